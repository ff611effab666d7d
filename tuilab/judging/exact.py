"""Exact claims: numbers, counts, equalities. They hold or they do not, on every machine."""

import math
from collections.abc import Sequence

from tuilab.judging.judgement import Judgement
from tuilab.record import events
from tuilab.record.events import Measured
from tuilab.record.verdicts import Verdict


def judge_exact(measured: Sequence[events.ClaimMeasured]) -> Judgement:
    """Judge an exact claim: it must hold in every repeat."""
    for event in measured:
        if not holds(event):
            return Judgement(Verdict.REFUTED, f"measured {in_words(event.got)}, claimed {claimed(event)}", _single(event.got))
    return Judgement(Verdict.SUPPORTED, f"measured {in_words(measured[-1].got)}", _single(measured[-1].got))


def holds(event: events.ClaimMeasured) -> bool:
    """Say whether what was measured is what was claimed."""
    got, want = event.got, event.want
    if got.words or want.words:
        return event.op == "equals" and got.words == want.words and not got.numbers and not want.numbers
    if event.op == "equals":
        return len(got.numbers) == len(want.numbers) and all(
            _is_equal(a, b, event.tolerance) for a, b in zip(got.numbers, want.numbers, strict=True)
        )
    if not got.numbers:
        return False
    if event.op == "between":
        low, high = want.numbers
        return all(low <= value <= high for value in got.numbers)
    (bound,) = want.numbers
    return all(value <= bound if event.op == "at_most" else value >= bound for value in got.numbers)


def _is_equal(a: float, b: float, tolerance: float) -> bool:
    """NaN is a result that can be claimed: it equals NaN here."""
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= tolerance


def _single(value: Measured) -> float | None:
    return value.numbers[0] if len(value.numbers) == 1 else None


def in_words(value: Measured) -> str:
    """Return a measured value for people."""
    if value.words or not value.numbers:
        return value.words or "nothing"
    if len(value.numbers) == 1:
        return _in_digits(value.numbers[0])
    shown = ", ".join(map(_in_digits, value.numbers[:8]))
    return f"[{shown}{', …' if len(value.numbers) > 8 else ''}]"


def claimed(event: events.ClaimMeasured) -> str:
    """Return the bound of an exact claim for people."""
    if event.op == "between":
        return " to ".join(map(_in_digits, event.want.numbers))
    sign = {"equals": "", "at_most": "at most ", "at_least": "at least "}[event.op]
    spread = f" ± {event.tolerance:g}" if event.tolerance and event.op == "equals" else ""
    return f"{sign}{in_words(event.want)}{spread}"


def _in_digits(number: float) -> str:
    """Return a count in full, and any other number to six digits."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f"{number:.6g}"
