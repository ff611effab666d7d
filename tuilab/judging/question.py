"""A claim about a ratio as a question about numbers: all in logs, and turned so that it claims "at least"."""

import math
from dataclasses import dataclass, replace
from statistics import fmean

from tuilab.judging import stats
from tuilab.judging.controls import distrust, offset
from tuilab.judging.evidence import MIN_UNITS, Evidence
from tuilab.judging.looks import Look
from tuilab.judging.units import Units, units_of
from tuilab.record import events


@dataclass(frozen=True)
class Question:
    """A claim and its measurements; alone and at the last look, until it is asked `at` another one."""

    units: Units
    offset: float  # of the control, by which the interval is wider to either side
    bound: float
    margin: float
    trust: str  # why "no difference" must not be claimed, or nothing
    claimed: float  # confidence
    confidence: float  # of the interval, the same one for every decision
    final: float  # at the last look

    def at(self, look: Look, among: int) -> "Question":
        """Return the question at one of several looks, as one among several claims."""
        return replace(self, confidence=look.confidence(self.claimed, among), final=look.final_confidence(self.claimed, among))

    def interval(self) -> tuple[float, float, float]:
        """Return the mean and the ends of the interval that is held against the bound and the margin."""
        center, low, high = self.units.interval(self.confidence)
        return center, low - self.offset, high + self.offset

    def edges(self) -> list[float]:
        """Return where one verdict ends and another begins: one of them may be the true ratio."""
        if self.bound < 0 or (self.bound == 0 and self.trust):
            return [self.bound]
        return [self.bound, self.margin, *([] if self.trust else [-self.margin])]

    def is_clear(self) -> bool:
        """Say whether the interval holds none of the edges, so that nothing else is left to say."""
        _, low, high = self.interval()
        return not any(low <= edge <= high for edge in self.edges())

    def clearance(self) -> float:
        """Return how far the mean is from the nearest edge."""
        center = fmean(self.units.values)
        return min(abs(center - edge) for edge in self.edges()) - self.offset

    def distances(self) -> list[float]:
        """Return how far the mean is from where each way of deciding ends: the bound, and the margin from within."""
        center = fmean(self.units.values)
        against = abs(center - self.bound) - self.offset
        return [against] if self.bound < 0 or self.trust else [against, self.margin - abs(center) - self.offset]


def ask(claim: events.ClaimDeclared, evidence: Evidence) -> Question:
    """Put the claim as a question; a claim of less than the margin says itself that less than the margin matters."""
    sign = 1 if claim.op == "at_least" else -1
    bound, margin = sign * math.log(claim.bound), math.log1p(claim.margin)
    return Question(
        units=units_of(evidence, evidence.rounds).turned(sign),
        offset=offset(evidence),
        bound=bound,
        margin=min(margin, bound) if bound > 0 else margin,
        trust=distrust(claim, evidence),
        claimed=claim.confidence,
        confidence=claim.confidence,
        final=claim.confidence,
    )


def too_few(question: Question) -> str:
    """Return that there are fewer units than an interval needs, or nothing."""
    count = len(question.units.values)
    if count >= MIN_UNITS:
        return ""
    return f"{question.units.in_words()} {'is' if count == 1 else 'are'} too few, {MIN_UNITS} are needed"


def more_repeats(question: Question, reason: str) -> int | None:
    """Return how many further repeats would likely decide at the observed distance; None where it cannot be known."""
    units = question.units
    if units.name == "rounds" or reason not in ("", too_few(question)):
        return None
    count = len(units.values)
    if count < MIN_UNITS:
        return MIN_UNITS - count
    deviation = units.error * math.sqrt(count)
    needed = [stats.units_needed(distance, deviation, question.final) for distance in question.distances()]
    return max(1, min(known) - count) if (known := [number for number in needed if number is not None]) else None
