"""A claim about a ratio as a question about numbers: all in logs, and turned so that it claims "at least"."""

import math
from dataclasses import dataclass, replace
from statistics import fmean

from tuilab.judging import stats
from tuilab.judging.controls import distrust
from tuilab.judging.evidence import MIN_UNITS, Evidence, units_of
from tuilab.record import events
from tuilab.text import plural


@dataclass(frozen=True)
class Question:
    """A claim and its measurements; alone and at the last look, until it is asked `at` another one."""

    units: list[float]
    unit: str
    bound: float
    margin: float
    alpha: float  # the error that the claim may spend
    trust: str  # why "no difference" must not be claimed, or nothing
    confidence: float  # of the interval that the bound is held against
    equivalence: float  # of the interval that must lie inside the margin
    final: tuple[float, float]  # the same two at the last look

    def at(self, look: tuple[int, int], among: int) -> "Question":
        """Return the question at one of several looks, as one among several claims."""
        alpha = self.alpha / among
        confidence, equivalence = (stats.look_confidence(*look, 1 - error) for error in (alpha, 2 * alpha))
        final = (stats.look_confidence(look[1], look[1], 1 - alpha), stats.look_confidence(look[1], look[1], 1 - 2 * alpha))
        return replace(self, confidence=confidence, equivalence=equivalence, final=final)


def ask(claim: events.ClaimDeclared, evidence: Evidence) -> Question:
    """Put the claim as a question; a claim of less than the margin says itself that less than the margin matters."""
    units, unit = units_of(evidence.rounds)
    sign = 1 if claim.op == "at_least" else -1
    bound, margin = sign * math.log(claim.bound), math.log1p(claim.margin)
    alpha = 1 - claim.confidence
    return Question(
        units=[sign * value for value in units],
        unit=unit,
        bound=bound,
        margin=min(margin, bound) if bound > 0 else margin,
        alpha=alpha,
        trust=distrust(claim, evidence),
        confidence=1 - alpha,
        equivalence=1 - 2 * alpha,
        final=(1 - alpha, 1 - 2 * alpha),
    )


def too_few(question: Question) -> str:
    """Return that there are fewer units than an interval needs, or nothing."""
    count = len(question.units)
    if count >= MIN_UNITS:
        return ""
    return f"{counted(count, question.unit)} {'is' if count == 1 else 'are'} too few, {MIN_UNITS} are needed"


def more_repeats(question: Question, reason: str) -> int | None:
    """Return how many further repeats would likely decide at the observed distance; None where it cannot be known."""
    if question.unit == "rounds" or reason not in ("", too_few(question)):
        return None
    count = len(question.units)
    if count < MIN_UNITS:
        return MIN_UNITS - count
    needed = [units for units in _needed(question) if units is not None]
    return max(1, min(needed) - count) if needed else None


def _needed(question: Question) -> list[int | None]:
    """Return how many units each way of deciding needs: against the bound, and inside the margin."""
    center, deviation = fmean(question.units), stats.spread(question.units)
    confidence, equivalence = question.final
    against = stats.units_needed(abs(center - question.bound), deviation, confidence)
    if question.bound < 0 or question.trust:
        return [against]
    return [against, stats.units_needed(question.margin - abs(center), deviation, equivalence)]


def counted(count: int, unit: str) -> str:
    """Return units in words, so that nobody takes rounds for repeats."""
    return plural(count, "repeat") if unit == "repeats" else f"{plural(count, 'round')} within one process"
