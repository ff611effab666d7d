"""Convert the texts that users type into the values of a scenario's parameters.

The trailing comment of a parameter is its label. Its range and its quick value may follow:

    rows: int = 500,  # operator calls in the loop, 1..10000 (quick 100)
"""

import math
import re
from collections.abc import Iterable, Mapping

from tuilab.catalogue.scenario import Param, Value
from tuilab.errors import UsageError
from tuilab.text.display import GONE, did_you_mean, join, show

# The parameter that all scenarios have in common that call lab.device().
DEVICE = Param("device", "choice", "auto", ("auto", "cpu", "cuda"), "where the tensors live")

# Options of `tuilab run` itself. A parameter with the same name gets a longer option.
OPTIONS = frozenset({
    "address", "beside", "budget", "count", "detach", "engine", "fps", "gpus", "headless", "help",
    "json", "jsonl", "nnodes", "per-node", "plot", "predict", "quick", "quiet", "repeat", "report",
    "root", "scenarios", "strict", "timeout", "verbose",
})  # fmt: skip

_PREFIX = "param-"
_TEXT_LIMIT = 1000  # characters
_INT_LIMIT = 2**63  # a tensor and a record hold only smaller numbers
_BOOLS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
_DURATION_UNITS_S = {"s": 1, "m": 60, "h": 3600}
_NOUNS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}

# Compiled on first use: `tuilab list` needs none of them.
_WHOLE = r"[+-]?[0-9]{1,20}"
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_FLOAT = rf"{_NUMBER}|[+-]?[0-9]+\."
_RANGE = rf"(?:^|,\s*|\s)({_NUMBER})\.\.({_NUMBER})$"
_QUICK = r" ?\(quick ([^()]+)\)$"


def parse(param: Param, text: str) -> Value:
    """Return the value that a text means; if it means none, UsageError says what is allowed."""
    if GONE in text:
        raise UsageError(
            f"{param.name}: this value is a secret and was not recorded; give it again"
        )
    if param.type == "str":
        value = _read(param, text)
    else:
        value = _read(param, text.strip())
    if value is None:
        raise UsageError(
            f'{param.name}: "{show(text, 60)}" is not {_noun(param)}'
            f"{_hint(param)}{_hint_by_name(param, text)}"
        )
    if not _is_in_range(param, value):
        raise UsageError(f"{param.name}: {show(text, 60)} is out of range{_hint(param)}")
    return value


def _hint_by_name(param: Param, text: str) -> str:
    """Return how to choose the GPU with this name; empty if the parameter takes no GPU."""
    if not has_gpus(param):
        return ""
    from tuilab.config import hint_by_name

    return hint_by_name(text)


def option_of(name: str) -> str:
    """Return the option that sets a parameter and nothing else.

    It is `--rows` for rows, but `--param-root` for a parameter that is called root.
    """
    word = name.replace("_", "-")
    plain = word
    while plain.startswith(_PREFIX):
        plain = plain.removeprefix(_PREFIX)
    if plain in OPTIONS:
        return f"--{_PREFIX}{word}"
    return f"--{word}"


def parse_duration(text: str) -> float:
    """Return the seconds that `90`, `90s`, `2m` or `1.5h` mean; UsageError for another text."""
    number = text.strip()
    unit_s = 1
    if number[-1:] in _DURATION_UNITS_S:
        unit_s = _DURATION_UNITS_S[number[-1:]]
        number = number[:-1]
    try:
        duration_s = float(number) * unit_s
    except ValueError:
        duration_s = 0.0
    if not 0 < duration_s < 1e9:
        raise UsageError(f"'{show(text, 60)}' is not a duration; use for example 90s, 2m or 1.5h")
    return duration_s


def parse_prediction(text: str) -> float:
    """Return the number that a user predicts; UsageError for a text that is no number."""
    value = _read(Param("prediction", "float", 0.0), text.strip())
    if not isinstance(value, float):
        raise UsageError(
            f'"{show(text, 60)}" is not a number; '
            "use a number without a unit, for example 12 or 0.5"
        )
    return value


def check_values(params: Iterable[Param], overrides: Mapping[str, Value]) -> dict[str, Value]:
    """Return a value for every parameter: the override, checked, or the default.

    Raise UsageError for an unknown name or a value that the parameter does not take.
    """
    param_of_name = {param.name: param for param in params}
    for name in overrides:
        if name not in param_of_name:
            raise UsageError(f"no parameter {show(name, 60)}{did_you_mean(name, param_of_name)}")
    values = {}
    for name, param in param_of_name.items():
        values[name] = param.default
        if name in overrides:
            values[name] = parse(param, str(overrides[name]))
    for name, value in values.items():  # a choice is checked here: its texts are from the source
        if isinstance(value, str) and not _can_be_recorded(value):
            raise UsageError(
                f"{name}: {show(value, 60)} cannot be recorded; "
                f"use a text of up to {_TEXT_LIMIT} characters"
            )
    return values


def default_overrides(params: Iterable[Param], *, is_quick: bool = False) -> dict[str, Value]:
    """Return the values that replace defaults: those of `--quick`, and the user's usual device.

    A scenario that cannot take that device keeps its default.
    """
    from tuilab import config  # imported here: lists of runs, which only spell values, need it not

    device = config.device()
    quick: dict[str, Value] = {}
    devices: dict[str, Value] = {}
    for param in params:
        if is_quick and param.quick is not None:
            quick[param.name] = param.quick
        if has_gpus(param) and _read(param, device) is not None:
            devices[param.name] = device
    return quick | devices


def describe(param: Param) -> str:
    """Return the values that a parameter takes, in one phrase."""
    limits = _range(param)
    if not limits:
        return _noun(param)
    return f"{_noun(param)}, {limits}"


def with_comment(param: Param, comment: str) -> Param:
    """Return the parameter with the label, range and quick value of its trailing comment.

    The default and the quick value are checked as if users had typed them, so UsageError is raised
    if the parameter does not take one of them.
    """
    label = " ".join(comment.lstrip("#").split())
    quick_text = None
    if match := re.search(_QUICK, label):
        quick_text = match[1]
        label = label[: match.start()]
    if param.type in ("int", "float"):
        if match := re.search(_RANGE, label):
            param = param._replace(low=float(match[1]), high=float(match[2]))
            label = label[: match.start()]
    param = param._replace(label=label)
    default = parse(param, str(param.default))
    quick = None
    if quick_text is not None:
        quick = parse(param, quick_text)
    return param._replace(default=default, quick=quick)


def has_gpus(param: Param) -> bool:
    """Return whether a parameter also takes a GPU by its number: the device of `lab.device()`."""
    return param.name == "device" and "cuda" in param.choices


def is_gpu(text: str) -> bool:
    """Return whether a text names one GPU by its CUDA index: cuda:3."""
    from tuilab.config import GPU

    return re.fullmatch(GPU, text) is not None


def choices(param: Param) -> tuple[str, ...]:
    """Return the choices as texts, with `cuda:N` for each GPU of the machine."""
    texts = [str(choice) for choice in param.choices]
    if has_gpus(param):
        texts.append("cuda:N")
    return tuple(texts)


def spell(value: Value | None) -> str:
    """Return a value as a user would type it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "" if value is None else str(value)


def _read(param: Param, text: str) -> Value | None:
    """Return the value that a text means, in or out of its range; None if it means none.

    A choice also takes `cuda:N` if it is the device.
    """
    match param.type:
        case "int":
            if re.fullmatch(_WHOLE, text) and abs(int(text)) < _INT_LIMIT:
                return int(text)
        case "float":
            if re.fullmatch(_FLOAT, text) and abs(float(text)) != math.inf:
                return float(text)
        case "bool":
            return _BOOLS.get(text.lower())
        case "choice":
            for choice in param.choices:
                if str(choice) == text:
                    return choice
            if has_gpus(param) and is_gpu(text):
                return text
        case "str":
            if _can_be_recorded(text):
                return text
    return None


def _can_be_recorded(text: str) -> bool:
    if len(text) > _TEXT_LIMIT or "\0" in text:
        return False
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in text)
    return not has_surrogates


def _is_in_range(param: Param, value: Value) -> bool:
    if isinstance(value, str) or param.low is None or param.high is None:
        return True
    return param.low <= value <= param.high


def _noun(param: Param) -> str:
    if param.type == "choice":
        return f"one of {join(choices(param))}"
    return _NOUNS[param.type]


def _range(param: Param) -> str:
    if param.low is None:
        return ""
    return f"{spell(param.low)}..{spell(param.high)}"


def _hint(param: Param) -> str:
    """Return the range of a parameter, or a similar limit, and its default."""
    default = f"(default {show(spell(param.default), 60) or 'empty'})"
    limits = _range(param)
    if not limits and param.type == "bool":
        limits = "true, yes, on, 1 or false, no, off, 0"
    if not limits and param.type == "str":
        limits = f"up to {_TEXT_LIMIT} characters"
    if not limits:
        return f" {default}"
    return f"; it takes {limits} {default}"
