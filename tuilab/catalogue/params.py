"""The parameters of a scenario: what each one takes, and how the text that a user typed becomes its value.

A label is the trailing comment of a parameter; what it takes and its quick value may follow:

    rows: int = 500,  # operator calls in the loop, 1..10000 (quick 100)
"""

import re
from collections.abc import Iterable, Mapping

from tuilab.catalogue.scenario import Param, Value
from tuilab.errors import UsageError
from tuilab.text.display import GONE, did_you_mean, join, show

DEVICE = Param(
    "device", "choice", "auto", ("auto", "cpu", "cuda"), "where the tensors live"
)  # of all that call lab.device()

OPTIONS = frozenset({  # of `tuilab run` itself: a parameter that is called like one has a longer option
    "address", "beside", "budget", "count", "detach", "engine", "fps", "gpus", "headless", "help", "json", "jsonl",
    "nnodes", "per-node", "plot", "predict", "quick", "quiet", "repeat", "report", "root", "scenarios", "strict", "timeout",
    "verbose",
})  # fmt: skip

_PREFIX = "param-"
_TEXT_LIMIT = 1000  # characters
_INT_LIMIT = 2**63  # what a tensor and a record can hold
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
_NOUNS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}

# Patterns are compiled when they are used: `tuilab list` does without them.
_WHOLE = r"[+-]?[0-9]{1,20}"
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
_FLOAT = rf"{_NUMBER}|[+-]?[0-9]+\."
_RANGE = rf"(?:^|,\s*|\s)({_NUMBER})\.\.({_NUMBER})$"
_QUICK = r" ?\(quick ([^()]+)\)$"


def parse(param: Param, text: str) -> Value:
    """Return the value that a text means, or raise UsageError with what the parameter takes."""
    if GONE in text:
        raise UsageError(
            f"{param.name}: this value is a secret and was not recorded; give it again"
        )
    value = _read(param, text.strip() if param.type != "str" else text)
    if value is None:
        from tuilab.config import hint_by_name

        by_name = hint_by_name(text) if has_gpus(param) else ""
        raise UsageError(
            f'{param.name}: "{show(text, 60)}" is not {_noun(param)}{_hint(param)}{by_name}'
        )
    if not _is_in_range(param, value):
        raise UsageError(f"{param.name}: {show(text, 60)} is out of range{_hint(param)}")
    return value


def option_of(name: str) -> str:
    """Return the option that gives a parameter its value, and nothing else: `--rows`, but `--param-root` of one called root."""
    word = name.replace("_", "-")
    plain = word
    while plain.startswith(_PREFIX):
        plain = plain.removeprefix(_PREFIX)
    return f"--{_PREFIX}{word}" if plain in OPTIONS else f"--{word}"


def parse_duration(text: str) -> float:
    """Return the seconds that `90`, `90s`, `2m` or `1.5h` mean."""
    factor = {"s": 1, "m": 60, "h": 3600}.get(text.strip()[-1:], 0)
    try:
        seconds = float(text.strip()[:-1]) * factor if factor else float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise UsageError(f"'{show(text, 60)}' is not a duration; use for example 90s, 2m or 1.5h")
    return seconds


def parse_prediction(text: str) -> float:
    """Return the number that somebody expects."""
    value = _read(Param("prediction", "float", 0.0), text.strip())
    if not isinstance(value, float):
        raise UsageError(
            f'"{show(text, 60)}" is not a number; use a number without a unit, for example 12 or 0.5'
        )
    return value


def check_values(params: Iterable[Param], given: Mapping[str, Value]) -> dict[str, Value]:
    """Return a value for every parameter: the given one, checked, or the default."""
    known = {param.name: param for param in params}
    for name in given:
        if name not in known:
            raise UsageError(f"no parameter {show(name, 60)}{did_you_mean(name, known)}")
    values = {
        name: parse(param, str(given[name])) if name in given else param.default
        for name, param in known.items()
    }
    for name, value in values.items():  # a choice is what the source says
        if isinstance(value, str) and not _can_be_recorded(value):
            raise UsageError(
                f"{name}: {show(value, 60)} cannot be recorded; use a text of up to {_TEXT_LIMIT} characters"
            )
    return values


def stand_ins(params: Iterable[Param], *, is_quick: bool = False) -> dict[str, Value]:
    """Return what stands in the place of defaults: the values of `--quick`, and the device that the user has set for good.

    A scenario that cannot take that device keeps its default.
    """
    params = list(params)
    quick = {param.name: param.quick for param in params if is_quick and param.quick is not None}
    from tuilab import config  # which lists of runs, where values are only spelled, do without

    device = config.device()
    return quick | {
        param.name: device
        for param in params
        if has_gpus(param) and _read(param, device) is not None
    }


def describe(param: Param) -> str:
    """Return what a parameter takes, in one phrase."""
    return ", ".join(part for part in (_noun(param), _range(param)) if part)


def with_comment(param: Param, comment: str) -> Param:
    """Return the parameter with the label, range and quick value of its trailing comment."""
    label = " ".join(comment.lstrip("#").split())
    low = high = quick = None
    if found := re.search(_QUICK, label):
        quick, label = found[1], label[: found.start()]
    if param.type in ("int", "float") and (found := re.search(_RANGE, label)):
        low, high, label = float(found[1]), float(found[2]), label[: found.start()]
    param = param._replace(label=label, low=low, high=high)
    return param._replace(
        default=parse(param, str(param.default)),
        quick=None if quick is None else parse(param, quick),
    )


def has_gpus(param: Param) -> bool:
    """Say whether a parameter takes each GPU of the box beside its choices: the device that `lab.device()` is asked for."""
    return param.name == "device" and "cuda" in param.choices


def is_gpu(text: str) -> bool:
    """Say whether a text names one GPU by CUDA's number of it: cuda:3."""
    from tuilab.config import GPU

    return re.fullmatch(GPU, text) is not None


def choices(param: Param) -> tuple[str, ...]:
    """Return the choices as they are told, with what stands for each GPU of the box."""
    return (
        (*map(str, param.choices), "cuda:N") if has_gpus(param) else tuple(map(str, param.choices))
    )


def spell(value: Value | None) -> str:
    """Return a value as a user would type it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "" if value is None else str(value)


def _read(param: Param, text: str) -> Value | None:
    match param.type:
        case "int":
            value = int(text) if re.fullmatch(_WHOLE, text) else None
            return value if value is not None and abs(value) < _INT_LIMIT else None
        case "float":
            number = float(text) if re.fullmatch(_FLOAT, text) else None
            return number if number is not None and abs(number) != float("inf") else None
        case "bool":
            return _BOOLS.get(text.lower())
        case "choice":
            listed = next((choice for choice in param.choices if str(choice) == text), None)
            return text if listed is None and has_gpus(param) and is_gpu(text) else listed
        case "str":
            return text if _can_be_recorded(text) else None


def _can_be_recorded(text: str) -> bool:
    return (
        len(text) <= _TEXT_LIMIT
        and "\0" not in text
        and not any("\ud800" <= char <= "\udfff" for char in text)
    )


def _is_in_range(param: Param, value: Value) -> bool:
    if isinstance(value, str) or param.low is None or param.high is None:
        return True
    return param.low <= value <= param.high


def _noun(param: Param) -> str:
    if param.type == "choice":
        return f"one of {join(choices(param))}"
    return _NOUNS[param.type]


def _range(param: Param) -> str:
    return "" if param.low is None else f"{spell(param.low)}..{spell(param.high)}"


def _hint(param: Param) -> str:
    takes = {
        "bool": "true, yes, on, 1 or false, no, off, 0",
        "str": f"up to {_TEXT_LIMIT} characters",
    }.get(param.type)
    takes = _range(param) or takes
    default = f"(default {show(spell(param.default), 60) or 'empty'})"
    return f"; it takes {takes} {default}" if takes else f" {default}"
