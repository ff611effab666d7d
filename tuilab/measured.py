"""What a scenario hands to a claim, as the numbers or words that are recorded and compared."""

import math
from typing import Any

import torch

from tuilab import events
from tuilab.events import Measured


def measured(value: Any) -> Measured:
    """Return a value as the numbers or words that an exact claim compares."""
    if isinstance(value, torch.Tensor):
        value = value.detach().tolist()
    if isinstance(value, str):
        return Measured(words=value)
    if isinstance(value, list | tuple):
        parts = [measured(part) for part in value]
        if any(part.words for part in parts):
            return Measured(words=" ".join(part.words or str(part.numbers) for part in parts))
        return Measured(numbers=[number for part in parts for number in part.numbers])
    if isinstance(value, bool):
        return Measured(words=str(value))
    return Measured(numbers=[float(value)])


def claimed_bound(
    got: Any,
    equals: Any,
    at_most: float | None,
    at_least: float | None,
    between: tuple[float, float] | None,
    tolerance: float = 0.0,
) -> tuple[events.Operator, Measured]:
    """Return what a claim holds a value against; TypeError or ValueError for what no value could be held against."""
    given = [(op, want) for op, want in (("equals", equals), ("at_most", at_most), ("at_least", at_least), ("between", between))
             if want is not None]  # fmt: skip
    if not given and isinstance(got, bool):
        given = [("equals", True)]
    if len(given) != 1:
        raise TypeError("a claim takes one of equals=, at_most=, at_least=, between=, or a value that is True")
    ((op, want),) = given
    bound = measured(want)
    if not 0 <= tolerance < math.inf or (tolerance and op != "equals"):
        raise ValueError(f"a tolerance is a finite number beside equals=, zero or more, not {tolerance!r} beside {op}=")
    if op != "equals":
        _check_order(op, bound.numbers, 2 if op == "between" else 1)
    return op, bound  # type: ignore[return-value]


def _check_order(op: str, bounds: list[float], count: int) -> None:
    """Refuse bounds that no value could lie within."""
    if len(bounds) != count or any(map(math.isnan, bounds)) or bounds != sorted(bounds):
        takes = "two numbers, the smaller one first" if count == 2 else "one number"
        raise ValueError(f"{op}= takes {takes}, not {bounds}")


def two_arms(ratio: str) -> tuple[str, str]:
    """Return the arms of a ratio such as `loop/sum`."""
    over, slash, under = ratio.partition("/") if isinstance(ratio, str) else ("", "", "")
    if not (over and slash and under) or over == under:
        raise ValueError(f"a ratio names two arms, as in slow/fast, not {ratio!r}")
    return over, under
