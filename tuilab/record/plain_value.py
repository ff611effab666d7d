"""Handles the values of exact claims as plain data: numbers, texts, True and False, lists of them.

Equal values are: whole numbers of any size, 3 and 3.0, NaN and NaN, and lists with equal parts. A
list of one equals its element, as a tensor of one element is a number. True is no number, a text is
never a number, and an empty list equals only an empty list.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

DEEPEST = 64  # levels of lists: an array has no more axes

Leaf = bool | int | float | str
Value = Leaf | list[Any]


def is_equal(a: Value, b: Value, tolerance: float = 0.0) -> bool:
    """Say whether two values are equal; numbers may differ by the tolerance."""
    return _is_same(_bare(a), _bare(b), tolerance)


def is_number(value: Value) -> bool:
    """Say whether a value is a number; True is none, although Python treats it as one."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def leaves(value: Value) -> Iterator[Leaf]:
    """Yield the parts that are no lists, in their order."""
    if isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def shape_of(value: Value) -> tuple[int, ...] | None:
    """Return the length of the lists at each depth; None if lists of one depth differ in length."""
    if not isinstance(value, list):
        return ()
    inner_shapes = {shape_of(part) for part in value}
    if len(inner_shapes) > 1:
        return None
    inner_shape = inner_shapes.pop() if inner_shapes else ()
    if inner_shape is None:
        return None
    return (len(value), *inner_shape)


def nest(numbers: Sequence[float], shape: Sequence[int]) -> Value:
    """Return a row of numbers as nested lists of a shape."""
    if len(shape) < 2:
        return list(numbers)
    inner_shape = shape[1:]
    size = math.prod(inner_shape)
    parts = []
    for start in range(0, len(numbers), size):
        parts.append(nest(numbers[start : start + size], inner_shape))
    return parts


def flat(value: Value) -> tuple[list[float], str]:
    """Return a value as (all its numbers in a row, ""); a value with texts as ([], words).

    Both are less than the value: older readers show them.
    """
    if not isinstance(value, list):
        if is_number(value):
            return [float(value)], ""
        return [], str(value)
    parts = [flat(part) for part in value]
    if any(words for _, words in parts):
        return [], " ".join(words or str(numbers) for numbers, words in parts)
    row = []
    for numbers, _ in parts:
        row += numbers
    return row, ""


def spell(value: Value) -> str:
    """Return a value as JSON; `read` returns the same value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read(text: str) -> Value:
    """Return the value of a JSON text; ValueError if no claim could hold it."""
    try:
        value: Value = json.loads(text)
        is_plain = _is_plain(value, DEEPEST)
    except (RecursionError, OverflowError) as problem:
        raise ValueError(
            "lists that are nested too deeply, or a number that fits no float"
        ) from problem
    if not is_plain:
        raise ValueError("no number, text or list of them")
    return value


def _is_plain(value: Any, depth: int) -> bool:
    """Return whether a value has only numbers, texts and lists, in at most `depth` levels of lists.

    Raises OverflowError for a number that fits no float.
    """
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(part, depth - 1) for part in value)
    if isinstance(value, int):
        return math.isfinite(value)  # raises OverflowError for a number that fits no float
    return isinstance(value, str | float)


def _is_same(a: Value, b: Value, tolerance: float) -> bool:
    """Return whether two values have the same structure, and equal texts and numbers.

    Numbers may differ by `tolerance`. True equals only True, and NaN equals NaN.
    """
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return False
        pairs = zip(a, b, strict=True)
        return all(_is_same(part_a, part_b, tolerance) for part_a, part_b in pairs)
    if is_number(a) and is_number(b):
        return _is_near(a, b, tolerance)  # type: ignore[arg-type]
    return type(a) is type(b) and a == b


def _is_near(a: float, b: float, tolerance: float) -> bool:
    """Return whether two numbers are equal, or differ by at most the tolerance; NaN equals NaN."""
    if a == b or (a != a and b != b):  # both NaN; math.isnan takes no int of any size
        return True
    if not tolerance or not (math.isfinite(a) and math.isfinite(b)):
        return False
    return abs(_exact(a) - _exact(b)) <= tolerance


def _exact(number: float) -> float:
    """Return a whole number as an int, so that a difference of large numbers loses no digit."""
    return int(number) if float(number).is_integer() else number


def _bare(value: Value) -> Value:
    """Return the element of a list of one, also of nested ones; any other value as it is."""
    inner = value
    while isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    return value if isinstance(inner, list) else inner
