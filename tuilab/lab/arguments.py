"""Check the arguments of calls of the lab, and convert them to plain values.

Functions raise TypeError or ValueError for a wrong value; the error names the argument and what it
takes. A value that passes is read back from the journal as it was given; numbers of numpy and
tensors with one element are converted to numbers.
"""

import math
import re
import reprlib
import sys
from collections.abc import Callable
from operator import index
from typing import Any, TypeVar

import msgspec
import torch

from tuilab.record.encoding import encode_exactly
from tuilab.record.events import Event

MOST = 2**63 - 1  # the largest number that a record and a tensor can hold
LEAST = -(2**63)
MOST_CORES = 4096  # processes or threads: a larger number is a mistake

_TEXTS = (str, bytes, bytearray)

E = TypeVar("E", bound=Event)
_WORDS = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "True or False"}


def number(name: str, value: Any) -> float:
    """Return a number as a float; NaN and Inf are numbers.

    Raises ValueError for a number beyond 64 bits, TypeError for anything else.
    """
    try:
        bare = value if type(value) in (int, float) else bare_number(value)
        if type(bare) is float:
            return bare
        if isinstance(bare, _TEXTS):
            raise TypeError("a text is no number")
        return float(bare)
    except OverflowError as problem:
        raise ValueError(
            f"{name} takes a number that fits 64 bits, not {describe_value(value)}"
        ) from problem
    except Exception as problem:
        raise TypeError(f"{name} takes a number, not {describe_value(value)}") from problem


def number_in(name: str, value: Any, least: float, most: float = math.inf) -> float:
    """Return a number in a range; raise TypeError if it is no number, ValueError if outside."""
    number_value = number(name, value)
    if not least <= number_value <= most:
        raise ValueError(
            f"{name} takes a number {_range(least, most)}, not {describe_value(value)}"
        )
    return number_value


def whole(name: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """Return a whole number in a range.

    Raises ValueError outside of the range, TypeError for anything else, even for a float that is
    whole.
    """
    if type(value) is int and least <= value <= most:
        return value
    try:
        whole_value = int(index(bare_number(value)))
    except Exception as problem:
        raise TypeError(f"{name} takes a whole number, not {describe_value(value)}") from problem
    if not least <= whole_value <= most:
        raise ValueError(
            f"{name} takes a whole number {_range(least, most)}, not {describe_value(value)}"
        )
    return whole_value


def place(name: str, value: Any) -> int | float:
    """Return a position on an axis: a whole number of 64 bits, or a finite float.

    Raises ValueError for other numbers, TypeError for anything else.
    """
    if isinstance(value, int):
        return whole(name, value, LEAST)
    try:
        bare = bare_number(value)
        bare = bare if isinstance(bare, float) else index(bare)
    except Exception as problem:
        raise TypeError(f"{name} takes a number, not {describe_value(value)}") from problem
    if isinstance(bare, int):
        return whole(name, bare, LEAST)
    if not math.isfinite(bare):
        raise ValueError(f"{name} takes a finite number, not {describe_value(value)}")
    return float(bare)


def words(name: str, value: Any, limit: int | None = None) -> str:
    """Return a text of at most `limit` characters, without lone surrogates.

    Raises TypeError if it is no text, ValueError for another text.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} takes a text, not {describe_value(value)}")
    if limit is not None and len(value) > limit:
        raise ValueError(
            f"{name} takes a text of at most {limit} characters, not one of {len(value)}"
        )
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        raise ValueError(
            f"{name} takes whole characters, not half of one (a lone surrogate) as in"
            f" {describe_value(value)}"
        ) from problem
    return str.__str__(value)


def truth(name: str, value: Any) -> bool:
    """Return the truth value of an argument; raise TypeError if it has none, as an array."""
    try:
        return bool(value)
    except Exception as problem:  # an array of several
        raise TypeError(
            f"{name} takes a true or false value, not {describe_value(value)}"
        ) from problem


def flag(name: str, value: Any) -> bool:
    """Return True or False.

    Raises TypeError for other values, even if they count as true or false.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} takes True or False, not {describe_value(value)}")
    return value


def called(name: str, value: Any) -> Callable[..., Any]:
    """Return a function; raise TypeError if it cannot be called."""
    if not callable(value):
        raise TypeError(f"{name} takes a function, not {describe_value(value)}")
    return value  # type: ignore[no-any-return]


def checked(event: E) -> E:
    """Return an event with plain values.

    Raises TypeError or ValueError for a value that would not be read back as it is, and names it.
    """
    fields = {}
    for name in event.__struct_fields__:
        if name not in ("n", "t"):
            fields[name] = _plain_field(name, getattr(event, name))
    try:
        checked_event = msgspec.convert(fields, type(event))
    except msgspec.ValidationError as problem:
        raise _refusal(str(problem), fields) from problem
    except UnicodeEncodeError as problem:  # a lone surrogate, where a number is expected
        names = [name for name, value in fields.items() if value == problem.object]
        name = names[0] if names else ""
        raise TypeError(f"{name} takes no text, {describe_value(problem.object)}") from problem
    checked_event.n = checked_event.t = MOST  # the longest values that the writer may set
    encode_exactly(checked_event)
    return checked_event


def to_builtins(value: Any) -> Any:
    """Convert numbers of numpy and torch, and subclasses of plain types, to plain types."""
    if is_array(value):
        return bare_number(value) if _has_one(value) else value
    if isinstance(value, dict):
        return {to_builtins(key): to_builtins(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_builtins(inner) for inner in value]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return int(value) if isinstance(value, int) else float(value)


def is_array(value: Any) -> bool:
    """Say whether a value is a tensor or comes from numpy, which is never imported for this."""
    if isinstance(value, torch.Tensor):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic | numpy.ndarray)


def bare_number(value: Any) -> Any:
    """Return the only element of an array or tensor as a Python number; anything else as it is."""
    return value.item() if is_array(value) else value


def describe_value(value: Any) -> str:
    """Return a short description of a value, for an error message."""
    try:
        shown = reprlib.repr(value)
    except Exception:  # a class of the scenario, or a number of thousands of digits
        shown = ""
    if 0 < len(shown) <= 80:
        return shown
    return f"a {type(value).__name__}"


def _plain_field(name: str, value: Any) -> Any:
    try:
        return to_builtins(value)
    except RecursionError as problem:
        raise ValueError(f"{name} is nested too deeply; pass flatter data") from problem


def _has_one(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() == 1 and not value.is_meta
    return bool(value.size == 1)


def _range(least: float, most: float) -> str:
    if most == math.inf:
        return f"of {least:g} or more"
    lowest = "-2**63" if least == LEAST else f"{least:g}"
    highest = "2**63 - 1" if most == MOST else f"{most:g}"
    return f"from {lowest} to {highest}"


def _refusal(problem: str, fields: dict[str, Any]) -> Exception:
    """Return the error for an argument from that of the decoder.

    The latter is, for example, "Expected `int`, got `float` - at `$.done`".
    """
    complaint, _, path = problem.partition(" - at `$")
    names = re.findall(r"\w+", path)
    name = names[0] if names else ""
    if name not in fields:
        return ValueError(complaint)
    plain_complaint = complaint.removeprefix("Expected ").replace("`", "")
    expected, _, received_type = plain_complaint.partition(", got ")
    first_word = re.search(r"\w+", expected)
    if first_word and first_word[0] in _WORDS:
        expected = expected.replace(first_word[0], _WORDS[first_word[0]], 1)
    message = f"{name} takes {expected}, not {describe_value(fields[name])}"
    return TypeError(message) if received_type else ValueError(message)
