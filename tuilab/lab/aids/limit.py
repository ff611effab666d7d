"""The largest value for which something works, found by halving."""

from collections.abc import Callable
from typing import Any

from tuilab.lab.given import number_in, told, truth, whole

_HALVINGS = 40  # of numbers with a fraction: to a millionth of a millionth of the range


def find_limit(works: Callable[[Any], Any], low: float, high: float) -> float:
    """Return the largest value from `low`, which works, to `high`, which does not: whole where both are whole numbers."""
    is_whole = _is_whole(low) and _is_whole(high)
    least, most = (whole("low", low, -(10**30), 10**30), whole("high", high, -(10**30), 10**30)) if is_whole else (
        number_in("low", low, -1e300, 1e300), number_in("high", high, -1e300, 1e300)
    )  # fmt: skip
    if not least < most:
        raise ValueError(f"low takes a value below high, not {told(low)} with high={told(high)}")
    if not _does(works, least):
        raise ValueError(f"low takes a value that works, but {least:g} does not; choose another low")
    if _does(works, most):
        raise ValueError(f"high takes a value that does not work, but {most:g} does; choose a larger high")
    return _halve_whole(works, least, most) if is_whole else _halve(works, least, most)


def _halve_whole(works: Callable[[Any], Any], works_at: Any, fails_at: Any) -> int:
    while fails_at - works_at > 1:
        middle = (works_at + fails_at) // 2
        works_at, fails_at = (middle, fails_at) if _does(works, middle) else (works_at, middle)
    return int(works_at)


def _halve(works: Callable[[Any], Any], works_at: float, fails_at: float) -> float:
    for _ in range(_HALVINGS):
        middle = (works_at + fails_at) / 2
        works_at, fails_at = (middle, fails_at) if _does(works, middle) else (works_at, middle)
    return works_at


def _does(works: Callable[[Any], Any], value: Any) -> bool:
    return truth("works", works(value))


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)
