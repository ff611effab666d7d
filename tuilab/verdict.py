"""The verdicts: from what was claimed and what was measured, by a rule that has a version and no other input.

An exact claim is SUPPORTED or REFUTED. A claim about a ratio is judged on the *size* of the effect: the interval of the
ratio against the claimed bound.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tuilab import events
from tuilab.events import Measured
from tuilab.stats import t_interval
from tuilab.summary import Claim, RunSummary, ratios

RULE = "tuilab-1"
MIN_UNITS = 6


class Verdict(StrEnum):
    """What can be said of a claim."""

    SUPPORTED = "SUPPORTED"
    WEAKER = "WEAKER THAN CLAIMED"
    REFUTED = "REFUTED"
    NO_DIFFERENCE = "NO MEANINGFUL DIFFERENCE"
    INCONCLUSIVE = "INCONCLUSIVE"
    INVALID = "INVALID"
    NOT_TESTABLE = "NOT TESTABLE HERE"


@dataclass(frozen=True)
class Judgement:
    """A verdict, why, and the estimate with its interval where there is one."""

    verdict: Verdict
    why: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


def judge(summary: RunSummary) -> list[events.VerdictReached]:
    """Return the verdict on every claim of a finished run, in the order of the claims."""
    reached = []
    for claim in summary.claims.values():
        found = judge_claim(claim, summary)
        if found is not None:
            reached.append(
                events.VerdictReached(
                    text=claim.text,
                    verdict=found.verdict,
                    rule=RULE,
                    why=found.why,
                    estimate=found.estimate,
                    low=found.low,
                    high=found.high,
                )
            )
    return reached


def judge_claim(claim: Claim, summary: RunSummary) -> Judgement | None:
    """Return what can be said of a claim so far; None while nothing was measured for it."""
    if claim.needs:
        return Judgement(Verdict.NOT_TESTABLE, claim.needs)
    if claim.measured:
        return judge_exact(claim.measured)
    if claim.declared is not None:
        logs = ratios(summary, claim.declared.over, claim.declared.under)
        if logs:
            return judge_ratio(claim.declared, logs, _difference(claim.declared, summary))
    if summary.box_lacks:
        return Judgement(Verdict.NOT_TESTABLE, summary.box_lacks)
    return None


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


def judge_ratio(claim: events.ClaimDeclared, logs: dict[str, list[float]], difference: str) -> Judgement:
    """Judge a claim about the ratio of two arms from the log ratios of its rounds, by writer (one a repeat)."""
    units = next(iter(logs.values())) if len(logs) == 1 else [sum(values) / len(values) for values in logs.values()]
    where = "within one process" if len(logs) == 1 else f"over {len(logs)} processes"
    center, low, high = (math.exp(x) for x in t_interval(units, claim.confidence))
    if difference:
        return Judgement(Verdict.INVALID, difference, center, low, high)
    if len(units) < MIN_UNITS:
        return Judgement(Verdict.INCONCLUSIVE, f"{len(units)} values are too few for an interval", center, low, high)
    verdict = decide(claim, low, high, units)
    return Judgement(verdict, f"{len(units)} values {where}", center, low, high)


def decide(claim: events.ClaimDeclared, low: float, high: float, units: Sequence[float]) -> Verdict:
    """Lay the interval of the ratio against the claimed bound."""
    if claim.op == "at_most":  # the same question about the inverse ratio
        return _decide_at_least(1 / claim.bound, 1 / high, 1 / low, claim.margin, [-unit for unit in units])
    return _decide_at_least(claim.bound, low, high, claim.margin, units)


def _decide_at_least(bound: float, low: float, high: float, margin: float, units: Sequence[float]) -> Verdict:
    if low >= bound:
        return Verdict.SUPPORTED
    _, low90, high90 = (math.exp(x) for x in t_interval(units, 0.90))
    if bound > 1 + margin and 1 / (1 + margin) <= low90 and high90 <= 1 + margin:
        return Verdict.NO_DIFFERENCE
    if high < bound:
        return Verdict.WEAKER if low > 1 + margin else Verdict.REFUTED
    return Verdict.INCONCLUSIVE


def _difference(claim: events.ClaimDeclared, summary: RunSummary) -> str:
    """Return how the two arms differ in what they compute, or nothing: a faster arm must do the same work."""
    for _, race in summary.differences:
        if race.is_same is False and {claim.over, claim.under} <= set(race.arms):
            return race.difference
    return ""


def _single(value: Measured) -> float | None:
    return value.numbers[0] if len(value.numbers) == 1 else None


def in_words(value: Measured) -> str:
    """Return a measured value for people."""
    if value.words or not value.numbers:
        return value.words or "nothing"
    if len(value.numbers) == 1:
        return f"{value.numbers[0]:.6g}"
    shown = ", ".join(f"{number:.6g}" for number in value.numbers[:8])
    return f"[{shown}{', …' if len(value.numbers) > 8 else ''}]"


def claimed(event: events.ClaimMeasured) -> str:
    """Return the bound of an exact claim for people."""
    if event.op == "between":
        return f"{event.want.numbers[0]:.6g} to {event.want.numbers[1]:.6g}"
    sign = {"equals": "", "at_most": "at most ", "at_least": "at least "}[event.op]
    spread = f" ± {event.tolerance:g}" if event.tolerance and event.op == "equals" else ""
    return f"{sign}{in_words(event.want)}{spread}"
