"""Whether an exact claim holds: whether what was measured is what was claimed."""

import math

from tuilab.record.events import ClaimMeasured, Operator
from tuilab.record.plain_value import Value, is_equal, is_number, leaves


def holds(event: ClaimMeasured) -> bool:
    """Say whether what was measured is what was claimed."""
    return is_as_claimed(event.got.value, event.op, event.want.value, event.tolerance)


def is_as_claimed(got: Value, op: Operator, want: Value, tolerance: float = 0.0) -> bool:
    """Say whether a value is what a bound asks of it; every number of a list has to lie within."""
    if op == "equals":
        return is_equal(got, want, tolerance)
    values, bounds = [*leaves(got)], [*leaves(want)]
    if not values or not all(map(is_number, values + bounds)):
        return False
    low, high = {
        "between": bounds,
        "at_most": [-math.inf, *bounds],
        "at_least": [*bounds, math.inf],
    }[op]
    return all(low <= value <= high for value in values)  # type: ignore[operator]
