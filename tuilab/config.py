"""Read the user's configuration: a few settings in a TOML file.

In this order, tuilab uses an option on the command line, a TUILAB_ variable, the file, or the
default. The settings of the file are set as variables, so that every process of a run has the
same. To load TOML takes longer than `tuilab list` may take, so it is loaded only if there is a
file.
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
GPU = r"cuda:(?:0|[1-9][0-9]{0,3})"  # one GPU by its CUDA index
_LIMIT = 64 * 1024


class ConfigKey(NamedTuple):
    """One key of the file: its variable, its allowed values, and how to write one in the variable.

    `spell` returns None for a value that is not allowed.
    """

    variable: str
    takes: str
    spell: Callable[[Any], str | None]


class ConfigValue(NamedTuple):
    """The value of a setting, as in its variable, and its origin; an empty text if it has none."""

    text: str
    origin: str


def _spell_path(value: Any) -> str | None:
    """Return a path with its `~` replaced; None if it is no text, or not absolute."""
    if not isinstance(value, str) or "\0" in value:
        return None
    path = os.path.expanduser(value)
    return path if os.path.isabs(path) else None


def _spell_paths(value: Any) -> str | None:
    """Return absolute paths joined by colons; None if one is wrong or has a colon."""
    if not isinstance(value, list):
        return None
    paths = []
    for part in value:
        path = _spell_path(part)
        if path is None or os.pathsep in path:
            return None
        paths.append(path)
    return os.pathsep.join(paths)


def _spell_fps(value: Any) -> str | None:
    """Return a number from 0.1 to 30 as text; None for any other value."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return str(float(value)) if 0.1 <= value <= 30 else None


def _spell_device(value: Any) -> str | None:
    """Return a device name; None if it is no name that tuilab knows."""
    if not isinstance(value, str):
        return None
    return value if re.fullmatch(rf"auto|cpu|cuda|{GPU}", value) else None


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
    """Return the settings in the file, by key; none if there is no file.

    UsageError, with the line, if the file has a mistake.
    """
    path = places.config_file()
    try:
        # users link it to a folder of dotfiles
        return read_small(path, partial(_decode, path), _LIMIT, may_be_link=True)
    except Unusable as problem:
        if problem.fault is Fault.ABSENT:
            return {}
        raise UsageError(f"cannot read {show(path)}: {problem}") from problem


def checked() -> dict[str, ConfigValue]:
    """Return the settings in the file; UsageError also if a folder of scenarios does not exist."""
    values = read()
    scenarios = values.get("scenarios", ConfigValue("", ""))
    for folder in scenarios.text.split(os.pathsep):
        if folder and not os.path.isdir(folder):
            raise UsageError(
                f"{show(places.config_file())}, {scenarios.origin}: "
                f"no folder {show(folder)}; correct scenarios"
            )
    return values


def effective(environ: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Return every setting with its origin: a variable, a line of the file, or the default."""
    from_file = read()
    values = {}
    for key, setting in SETTINGS.items():
        if environ.get(setting.variable):
            values[key] = ConfigValue(environ[setting.variable], setting.variable)
        else:
            values[key] = from_file.get(key, ConfigValue("", "default"))
    return values


def apply() -> None:
    """Set the settings of the file as variables, unless a variable is already set.

    Raises UsageError if the file has a mistake.
    """
    for key, value in read().items():
        variable = SETTINGS[key].variable
        if value.text and not os.environ.get(variable):
            os.environ[variable] = value.text


def apply_or_pass() -> None:
    """Do the same, but ignore a file with mistakes: for commands that help to correct it."""
    try:
        apply()
    except TuilabError:
        return


def fps() -> float:
    """Return the frames per second of the screens, without regard to options.

    Raises UsageError if TUILAB_FPS is wrong.
    """
    setting = SETTINGS["fps"]
    text = os.environ.get(setting.variable)
    if not text:
        return FPS
    try:
        spelled = _spell_fps(float(text))
    except ValueError:
        spelled = None
    if spelled is None:
        raise UsageError(
            f"TUILAB_FPS is {show(text, 60)}; it takes {setting.takes}; "
            "correct it, or unset TUILAB_FPS"
        )
    return float(spelled)


def device() -> str:
    """Return the device of scenarios that can choose one, without regard to options.

    Empty if it is not set. Raises UsageError if TUILAB_DEVICE is wrong.
    """
    setting = SETTINGS["device"]
    text = os.environ.get(setting.variable, "")
    if text and _spell_device(text) is None:
        hint = hint_by_name(text) or "; correct it, or unset TUILAB_DEVICE"
        raise UsageError(f"TUILAB_DEVICE is {show(text, 60)}; it takes {setting.takes}{hint}")
    return text


def hint_by_name(device: object) -> str:
    """Return how to choose a GPU by its UUID, or a slice of one (MIG); empty if this is no UUID.

    The UUIDs are those that nvidia-smi prints.
    """
    if isinstance(device, str) and device.strip().startswith(("GPU-", "MIG-")):
        return "; to choose a GPU by its UUID, set CUDA_VISIBLE_DEVICES"
    return ""


def _decode(path: str, data: bytes) -> dict[str, ConfigValue]:
    """Return the settings in the data of the file; raise UsageError for a mistake."""
    import tomllib  # imported here: most commands find no file

    try:
        text = data.decode()
        values = tomllib.loads(text)
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        raise UsageError(
            f"{show(path)}, line {line} is not UTF-8; save the file as UTF-8"
        ) from problem
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise UsageError(f"{show(path)} is not valid TOML: {show(problem, 200)}") from problem
    return {key: _read_value(path, key, value, text) for key, value in values.items()}


def _read_value(path: str, key: str, value: Any, text: str) -> ConfigValue:
    """Return the value of a key with its line; raise UsageError if the key or value is unknown."""
    line = _line_of(key, text)
    setting = SETTINGS.get(key)
    if setting is None:
        hint = did_you_mean(key, SETTINGS)
        raise UsageError(f"{show(path)}, line {line}: unknown setting {show(key, 60)}{hint}")
    spelled = setting.spell(value)
    if spelled is None:
        hint = hint_by_name(value) if key == "device" else ""
        raise UsageError(f"{show(path)}, line {line}: {key} takes {setting.takes}{hint}")
    return ConfigValue(spelled, f"line {line}")


def _line_of(key: str, text: str) -> int:
    """Return the number of the line with a key of the top level; 1 if it is not found."""
    pattern = re.compile(rf"""\s*(\[+\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""")
    for number, line in enumerate(text.splitlines(), 1):
        if pattern.match(line):
            return number
    return 1
