"""Convert the values of claims into the numbers or words that are recorded and compared."""

import math
from typing import Any

import msgspec
import torch

from tuilab.lab.arguments import describe_value, is_array, number, number_in, words
from tuilab.record import events
from tuilab.record.events import Measured
from tuilab.record.plain_value import DEEPEST, Value, is_number, leaves

_SIZE_LIMIT = 30_000  # bytes: a record has two values, and the text of the claim


def measured(value: Any, argument: str = "got") -> Measured:
    """Return a value as the numbers or words that an exact claim compares.

    Raises TypeError or ValueError if it is neither, nested too deeply, or too large.
    """
    recorded = Measured.of(_plain(value, argument, DEEPEST))
    size = len(msgspec.json.encode(recorded))
    if size > _SIZE_LIMIT:
        raise ValueError(
            f"{argument} takes at most {_SIZE_LIMIT} bytes, not {size}; claim a summary, for"
            " example the largest value"
        )
    return recorded


def _plain(value: Any, argument: str, depth: int) -> Value:
    """Return a value of plain types, with arrays as lists; lists may be nested `depth` deep.

    Raises TypeError or ValueError for other values.
    """
    if is_array(value):
        value = _listed(value, argument)
    if isinstance(value, str):
        return words(argument, value)
    if isinstance(value, list | tuple):
        if not depth:
            raise ValueError(
                f"{argument} takes lists that are nested at most {DEEPEST} deep; claim a flatter"
                " list"
            )
        return [_plain(part, argument, depth - 1) for part in value]
    if isinstance(value, bool):
        return value
    checked_number = number(argument, value)
    if isinstance(value, int):
        return int(value)  # of any size, while a float would lose digits
    return checked_number


def _listed(value: Any, argument: str) -> Any:
    """Return an array or a tensor as lists, or the one number that it is; else raise TypeError."""
    try:
        if isinstance(value, torch.Tensor):
            return value.detach().tolist()
        return value.tolist()
    except Exception as problem:
        raise TypeError(
            f"{argument} takes numbers or words, not {describe_value(value)}"
        ) from problem


def claimed_bound(
    got: Any,
    equals: Any,
    at_most: float | None,
    at_least: float | None,
    between: tuple[float, float] | None,
    tolerance: float = 0.0,
) -> tuple[events.Operator, Measured]:
    """Return operator and bound of a claim.

    Raise TypeError or ValueError for an impossible bound.
    """
    bounds_by_operator: tuple[tuple[events.Operator, Any], ...] = (
        ("equals", equals), ("at_most", at_most), ("at_least", at_least), ("between", between),
    )  # fmt: skip
    stated = [(op, want) for op, want in bounds_by_operator if want is not None]
    if not stated and isinstance(got, bool):
        stated = [("equals", True)]
    if len(stated) != 1:
        raise TypeError(
            "lab.claim takes one of equals=, at_most=, at_least= and between=, or True or False as"
            " its value"
        )
    ((op, want),) = stated
    bound = measured(want, op)
    is_infinite = number_in("tolerance", tolerance, 0) == math.inf
    if is_infinite or (tolerance and op != "equals"):
        raise ValueError(
            "tolerance takes a finite number, and only with equals=, not"
            f" {describe_value(tolerance)} with {op}="
        )
    if op != "equals":
        _check_order(op, bound, 2 if op == "between" else 1)
    return op, bound


def _check_order(op: str, bound: Measured, count: int) -> None:
    """Raise ValueError unless the bound is one number, or two in order, without NaN."""
    bounds: list[Any] = list(leaves(bound.value))
    is_valid = (
        len(bounds) == count
        and all(is_number(part) for part in bounds)
        and not any(math.isnan(part) for part in bounds)
        and bounds == sorted(bounds)
    )
    if not is_valid:
        takes = "two numbers, the smaller one first" if count == 2 else "one number"
        given = describe_value(bound.words or bound.numbers)
        raise ValueError(f"{op}= takes {takes}, not {given}")


def two_arms(ratio: str) -> tuple[str, str]:
    """Return the arms of a ratio such as `loop/sum`; raise ValueError for another text."""
    over, slash, under = words("ratio", ratio).partition("/")
    if not (over and slash and under) or over == under:
        raise ValueError(
            f"ratio takes the names of two arms, for example slow/fast, not {describe_value(ratio)}"
        )
    return over, under
