"""Compares the measured value of an exact claim with the claimed one."""

import math

from tuilab.record.events import ClaimMeasured, Operator
from tuilab.record.plain_value import Value, is_equal, is_number, leaves


def holds(event: ClaimMeasured) -> bool:
    """Say whether the measured value is as claimed."""
    return is_as_claimed(event.got.value, event.op, event.want.value, event.tolerance)


def is_as_claimed(got: Value, op: Operator, want: Value, tolerance: float = 0.0) -> bool:
    """Say whether a value fulfils a claim; each number of a list has to be within the bounds."""
    if op == "equals":
        return is_equal(got, want, tolerance)
    values = list(leaves(got))
    bounds = list(leaves(want))
    if not values or not all(map(is_number, values + bounds)):
        return False
    if op == "at_most":
        bounds = [-math.inf, *bounds]
    elif op == "at_least":
        bounds = [*bounds, math.inf]
    low, high = bounds
    return all(low <= value <= high for value in values)  # type: ignore[operator]
