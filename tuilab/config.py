"""The user's configuration: a few settings in TOML, each of which an option or a variable overrides.

What counts is, in this order: an option on the command line, a TUILAB_ variable, the file, the default. The file's settings are
handed on as variables, so that every process of a run finds the same. Loading TOML takes longer than `tuilab list` may take:
it is only done where there is a file.
"""

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from tuilab.errors import TuilabError, UsageError
from tuilab.storage import places
from tuilab.storage.files import Fault, Unusable, read_small
from tuilab.text.display import did_you_mean, show

FPS = 2.0
DEVICE = "auto"
GPU = r"cuda:(?:0|[1-9][0-9]{0,3})"  # one GPU by CUDA's number of it
_LIMIT = 64 * 1024


class ConfigKey(NamedTuple):
    """One key of the file: its variable, what it takes, and how a right value is spelled in the variable."""

    variable: str
    takes: str
    spell: Callable[[Any], str | None]  # None: the value is not of that kind


class ConfigValue(NamedTuple):
    """What a setting is, as its variable has it, and who says so; empty where nobody does."""

    text: str
    origin: str


def _spell_path(value: Any) -> str | None:
    if not isinstance(value, str) or "\0" in value:
        return None
    path = os.path.expanduser(value)
    return path if os.path.isabs(path) else None


def _spell_paths(value: Any) -> str | None:
    paths = [_spell_path(one) for one in value] if isinstance(value, list) else [None]
    whole = [path for path in paths if path is not None and os.pathsep not in path]
    return os.pathsep.join(whole) if len(whole) == len(paths) else None


def _spell_fps(value: Any) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(float(value)) if is_number and 0.1 <= value <= 30 else None


def _spell_device(value: Any) -> str | None:
    return (
        value if isinstance(value, str) and re.fullmatch(rf"auto|cpu|cuda|{GPU}", value) else None
    )


SETTINGS = {
    "root": ConfigKey("TUILAB_ROOT", "an absolute path, or a path that begins with ~", _spell_path),
    "scenarios": ConfigKey(
        "TUILAB_SCENARIOS",
        'a list of absolute paths without a colon, such as ["~/lab"]',
        _spell_paths,
    ),
    "fps": ConfigKey("TUILAB_FPS", "a number from 0.1 to 30", _spell_fps),
    "device": ConfigKey("TUILAB_DEVICE", "auto, cpu, cuda or a GPU such as cuda:3", _spell_device),
}


def read() -> dict[str, ConfigValue]:
    """Return what the file says, by key; nothing where there is none. UsageError, with the line, where it says nonsense."""
    where = places.config_file()
    try:
        return read_small(
            where, partial(_decode, where), _LIMIT, may_be_link=True
        )  # people link to a folder of dotfiles
    except Unusable as problem:
        if problem.fault is Fault.ABSENT:
            return {}
        raise UsageError(f"cannot read {show(where)}: {problem}") from problem


def checked() -> dict[str, ConfigValue]:
    """Return what the file says; UsageError also where it names a folder of scenarios that is not there."""
    found = read()
    for folder in found.get("scenarios", ConfigValue("", "")).text.split(os.pathsep):
        if folder and not os.path.isdir(folder):
            raise UsageError(
                f"{show(places.config_file())}, {found['scenarios'].origin}: no folder {show(folder)}; correct scenarios"
            )
    return found


def effective(environ: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Return every setting with who says so."""
    told = read()
    found = {}
    for key, setting in SETTINGS.items():
        if environ.get(setting.variable):
            found[key] = ConfigValue(environ[setting.variable], setting.variable)
        else:
            found[key] = told.get(key, ConfigValue("", "default"))
    return found


def apply() -> None:
    """Hand the file's settings on as variables, where none is set."""
    for key, value in read().items():
        if value.text and not os.environ.get(SETTINGS[key].variable):
            os.environ[SETTINGS[key].variable] = value.text


def apply_or_pass() -> None:
    """Do the same, and pass over a file that says nonsense: for commands that help with it."""
    try:
        apply()
    except TuilabError:
        return


def fps() -> float:
    """Return how often the screens draw, where no option says."""
    given = os.environ.get(SETTINGS["fps"].variable)
    if not given:
        return FPS
    try:
        spelled = _spell_fps(float(given))
    except ValueError:
        spelled = None
    if spelled is None:
        raise UsageError(
            f"TUILAB_FPS is {show(given, 60)}; it takes {SETTINGS['fps'].takes}; correct it, or unset TUILAB_FPS"
        )
    return float(spelled)


def device() -> str:
    """Return the device for scenarios that have one to choose, where no option says; nothing where nobody says."""
    given = os.environ.get(SETTINGS["device"].variable, "")
    if given and _spell_device(given) is None:
        hint = hint_by_name(given) or "; correct it, or unset TUILAB_DEVICE"
        raise UsageError(
            f"TUILAB_DEVICE is {show(given, 60)}; it takes {SETTINGS['device'].takes}{hint}"
        )
    return given


def hint_by_name(device: object) -> str:
    """Return where the name of a GPU belongs, or of a slice of one (MIG) as nvidia-smi has it; nothing for what is none."""
    is_name = isinstance(device, str) and device.strip().startswith(("GPU-", "MIG-"))
    return "; to choose a GPU by its UUID, set CUDA_VISIBLE_DEVICES" if is_name else ""


def _decode(where: str, data: bytes) -> dict[str, ConfigValue]:
    import tomllib

    try:
        text = data.decode()
        found = tomllib.loads(text)
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        raise UsageError(
            f"{show(where)}, line {line} is not UTF-8; save the file as UTF-8"
        ) from problem
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise UsageError(f"{show(where)} is not valid TOML: {show(problem, 200)}") from problem
    return {key: _value(where, key, value, text) for key, value in found.items()}


def _value(where: str, key: str, value: Any, text: str) -> ConfigValue:
    line = _line(key, text)
    setting = SETTINGS.get(key)
    if setting is None:
        raise UsageError(
            f"{show(where)}, line {line}: unknown setting {show(key, 60)}{did_you_mean(key, SETTINGS)}"
        )
    spelled = setting.spell(value)
    if spelled is None:
        hint = hint_by_name(value) if key == "device" else ""
        raise UsageError(f"{show(where)}, line {line}: {key} takes {setting.takes}{hint}")
    return ConfigValue(spelled, f"line {line}")


def _line(key: str, text: str) -> int:
    """Return the number of the line that a key of the top level stands in."""
    quoted = re.escape(key)
    begins = re.compile(rf"""\s*(\[+\s*)?["']?{quoted}["']?\s*[=.\]]""")
    return next((at for at, line in enumerate(text.splitlines(), 1) if begins.match(line)), 1)
