"""A claim about a ratio as a question about numbers: all in logs, and turned so that it claims "at least"."""

import math
from dataclasses import dataclass, replace
from statistics import fmean

from tuilab.judging import stats
from tuilab.judging.controls import distrust, offset
from tuilab.judging.evidence import MIN_UNITS, Evidence
from tuilab.judging.looks import Look
from tuilab.judging.units import Units, undisturbed_units, units_of
from tuilab.record import events

# What a thread that was taken off its core may pay for it in CPU time, at most. It is assumed if
# too few blocks were undisturbed to measure it.
_PREEMPTION = math.log(1.08)


@dataclass(frozen=True)
class Question:
    """A claim and its measurements; alone and at the last look, until it is asked `at` another one."""

    units: Units
    undisturbed: Units | None  # of undisturbed blocks, if some were not: a verdict has to hold of both
    offset: float  # by which the interval is wider to either side: of the control, of preemption
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
        """Return the mean and the ends of the interval that is compared with the bound and the margin.

        If some blocks were disturbed, it reaches over the intervals of all blocks and of the
        undisturbed ones, and as far beyond the latter as the two views differ.
        """
        center, low, high = self.units.interval(self.confidence)
        if self.undisturbed is not None:
            undisturbed, undisturbed_low, undisturbed_high = self.undisturbed.interval(self.confidence)
            # Undisturbed blocks pay, too, for a short preemption and for that of the block before
            # them. They are taken to pay as much as the disturbed ones pay more than they do.
            beyond = undisturbed - center
            low = min(low, undisturbed_low + min(beyond, 0.0))
            high = max(high, undisturbed_high + max(beyond, 0.0))
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
        clearances = []
        for units in self._views():
            center = fmean(units.values)
            clearances.append(min(abs(center - edge) for edge in self.edges()) - self.offset)
        return min(clearances)

    def distances(self) -> list[float]:
        """Return how far the mean is from where each way of deciding ends: the bound, and the margin from within."""
        center = fmean(self.units.values)
        to_bound = abs(center - self.bound) - self.offset
        if self.bound < 0 or self.trust:
            return [to_bound]
        return [to_bound, self.margin - abs(center) - self.offset]

    def error(self) -> float:
        """Return the standard error that the interval rests on: the larger one, if there are two."""
        return max(units.error for units in self._views())

    def freedom(self) -> int:
        """Return the degrees of freedom of the interval."""
        return min(units.freedom for units in self._views())

    def _views(self) -> list[Units]:
        if self.undisturbed is None:
            return [self.units]
        return [self.units, self.undisturbed]


def ask(claim: events.ClaimDeclared, evidence: Evidence) -> Question:
    """Put the claim as a question; a claim of less than the margin says itself that less than the margin matters."""
    sign = 1 if claim.op == "at_least" else -1
    bound, margin = sign * math.log(claim.bound), math.log1p(claim.margin)
    undisturbed = undisturbed_units(evidence)
    return Question(
        units=units_of(evidence, evidence.rounds).turned(sign),
        undisturbed=None if undisturbed is None else undisturbed.turned(sign),
        offset=offset(evidence) + preemption(evidence),
        bound=bound,
        margin=min(margin, bound) if bound > 0 else margin,
        trust=distrust(claim, evidence),
        claimed=claim.confidence,
        confidence=claim.confidence,
        final=claim.confidence,
    )


def preemption(evidence: Evidence) -> float:
    """Return what preemption is assumed to add to the CPU time of one arm; 0 if it was measured.

    The rounds of a single process on a disturbed machine are widened by far more than that.
    """
    if evidence.measure != "cpu" or undisturbed_units(evidence) is not None:
        return 0.0
    is_of_repeats = units_of(evidence, evidence.rounds).name == "repeats"
    return _PREEMPTION if is_of_repeats else 0.0


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
    deviation = question.error() * math.sqrt(count)
    needed = []
    for distance in question.distances():
        repeats = stats.units_needed(distance, deviation, question.final)
        if repeats is not None:
            needed.append(repeats)
    if not needed:
        return None
    return max(1, min(needed) - count)
