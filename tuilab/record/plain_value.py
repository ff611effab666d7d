"""The values of exact claims as plain data: numbers, texts, True and False, and lists of them.

Equal is what says the same: whole numbers of any size, 3 and 3.0, NaN and NaN, a list and one of the same parts. A list of one
is what is in it, as a tensor of one element is a number. True is no number, a text never is, and nothing equals nothing.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

DEEPEST = 64  # lists within lists: as many axes as an array may have

Leaf = bool | int | float | str
Value = Leaf | list[Any]


def is_equal(one: Value, other: Value, tolerance: float = 0.0) -> bool:
    """Say whether two values are the same, numbers to within a tolerance."""
    return _is_same(_bare(one), _bare(other), tolerance)


def is_number(value: Value) -> bool:
    """Say whether a value is a number; True is none, although Python counts with it."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def leaves(value: Value) -> Iterator[Leaf]:
    """Yield what is no list, in its order."""
    if isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def shape_of(value: Value) -> tuple[int, ...] | None:
    """Return how long the lists of each depth are; None where those of one depth differ."""
    if not isinstance(value, list):
        return ()
    inner = {shape_of(part) for part in value}
    below = next(iter(inner), ())
    return None if below is None or len(inner) > 1 else (len(value), *below)


def nest(numbers: Sequence[float], shape: Sequence[int]) -> Value:
    """Return numbers that stand one after the other as lists of a shape."""
    if len(shape) < 2:
        return [*numbers]
    size = math.prod(shape[1:])
    return [nest(numbers[at : at + size], shape[1:]) for at in range(0, len(numbers), size)]


def flat(value: Value) -> tuple[list[float], str]:
    """Return a value as all its numbers in a row, or where there are texts as words: less than it says."""
    if not isinstance(value, list):
        return ([float(value)], "") if is_number(value) else ([], str(value))
    parts = [flat(part) for part in value]
    if any(words for _, words in parts):
        return [], " ".join(words or str(numbers) for numbers, words in parts)
    return [number for numbers, _ in parts for number in numbers], ""


def spell(value: Value) -> str:
    """Return a value as JSON, from which it is read as it was."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read(text: str) -> Value:
    """Return the value that JSON spells; ValueError where it spells none that a claim could hold."""
    try:
        found: Value = json.loads(text)
        is_plain = _is_plain(found, DEEPEST)
    except (RecursionError, OverflowError) as problem:
        raise ValueError(
            "lists that are nested too deeply, or a number that fits no float"
        ) from problem
    if not is_plain:
        raise ValueError("no number, text or list of them")
    return found


def _is_same(one: Value, other: Value, tolerance: float) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _is_same(a, b, tolerance) for a, b in zip(one, other, strict=True)
        )
    if is_number(one) and is_number(other):
        return _is_near(one, other, tolerance)  # type: ignore[arg-type]
    return type(one) is type(other) and one == other


def _is_near(one: float, other: float, tolerance: float) -> bool:
    if one == other or (one != one and other != other):
        return True
    if not tolerance or not (math.isfinite(one) and math.isfinite(other)):
        return False
    a, b = (
        int(number) if float(number).is_integer() else number for number in (one, other)
    )  # no digit is lost
    return abs(a - b) <= tolerance


def _bare(value: Value) -> Value:
    """Return what is in a list of one, in however many brackets; any other value as it is."""
    inner = value
    while isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    return value if isinstance(inner, list) else inner


def _is_plain(value: Any, depth: int) -> bool:
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(part, depth - 1) for part in value)
    return isinstance(value, str | float) or (isinstance(value, int) and math.isfinite(value))
