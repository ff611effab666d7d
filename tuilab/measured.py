"""What a scenario hands to a claim, as the numbers or words that are recorded and compared."""

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
    got: Any, equals: Any, at_most: float | None, at_least: float | None, between: tuple[float, float] | None
) -> tuple[events.Operator, Measured]:
    given = [(op, want) for op, want in (("equals", equals), ("at_most", at_most), ("at_least", at_least), ("between", between))
             if want is not None]  # fmt: skip
    if not given and isinstance(got, bool):
        given = [("equals", True)]
    if len(given) != 1:
        raise TypeError("a claim takes one of equals=, at_most=, at_least=, between=, or a value that is True")
    op, want = given[0]
    return op, measured(want)  # type: ignore[return-value]
