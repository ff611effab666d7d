"""Turn a claim about a ratio into a statistical test of the measured units.

All numbers are natural logarithms of ratios. A claim of "at most" is turned into one of "at least"
for the inverse ratio, so that every test asks whether the mean lies above a bound.
"""

import math
from dataclasses import dataclass, replace
from statistics import fmean

from tuilab.judging import stats
from tuilab.judging.controls import control_offset, describe_distrust
from tuilab.judging.evidence import MIN_UNITS, Evidence
from tuilab.judging.interim_analyses import InterimAnalysis
from tuilab.judging.intervals import REPEATS, ROUNDS, Units, make_undisturbed_units, make_units
from tuilab.record import events

# CPU time that preemption may cost a thread at most: it returns to caches that others have used.
# It is assumed if too few blocks were undisturbed to measure it.
_PREEMPTION_COST = math.log(1.08)


@dataclass(frozen=True)
class RatioTest:
    """A claim and its units. `at_analysis` sets the confidences; before that they are as claimed.

    If some blocks were disturbed, there are two sets of units: from all blocks and from the
    undisturbed ones. A verdict has to hold for both.
    """

    units: Units
    undisturbed: Units | None
    offset: float  # widens the interval to either side: bias of the A/A control, and preemption
    bound: float
    margin: float
    distrust: str  # why "no difference" must not be claimed; empty if it may be
    claimed_confidence: float
    confidence: float  # of the interval, the same one for every decision
    final_confidence: float  # of the interval at the last planned analysis

    def at_analysis(self, analysis: InterimAnalysis, claims: int) -> "RatioTest":
        """Return the test at an interim analysis, as one of several claims."""
        return replace(
            self,
            confidence=analysis.confidence(self.claimed_confidence, claims),
            final_confidence=analysis.final_confidence(self.claimed_confidence, claims),
        )

    def interval(self) -> tuple[float, float, float]:
        """Return the mean, and both ends of the interval that decides.

        If some blocks were disturbed, the interval covers the intervals of all blocks and of the
        undisturbed ones. The difference between both means is what disturbances cost. Undisturbed
        blocks may cost something as well: after a short preemption, or after a preemption in the
        block before. So the interval reaches beyond theirs by the same difference once more.
        """
        center, low, high = self.units.interval(self.confidence)
        if self.undisturbed is not None:
            calm_center, calm_low, calm_high = self.undisturbed.interval(self.confidence)
            cost = calm_center - center
            low = min(low, calm_low + min(cost, 0.0))
            high = max(high, calm_high + max(cost, 0.0))
        return center, low - self.offset, high + self.offset

    def edges(self) -> list[float]:
        """Return the values of the mean at which one verdict ends and another one begins.

        The margin matters to a claim of a difference alone, whose bound is 0 or more.
        """
        if self.bound < 0 or (self.bound == 0 and self.distrust):
            return [self.bound]
        if self.distrust:
            return [self.bound, self.margin]
        return [self.bound, self.margin, -self.margin]

    def is_clear(self) -> bool:
        """Return whether the interval contains no edge, so that only one verdict is left."""
        _, low, high = self.interval()
        return not any(low <= edge <= high for edge in self.edges())

    def clearance(self) -> float:
        """Return the distance of the mean from the nearest edge, minus the offset."""
        clearances = []
        for units in self._all_units():
            center = fmean(units.values)
            nearest = min(abs(center - edge) for edge in self.edges())
            clearances.append(nearest - self.offset)
        return min(clearances)

    def decision_distances(self) -> list[float]:
        """Return, for each way to decide, how far the mean is from the limit of that decision.

        One limit is the bound. The other is the margin, which the mean may be within.
        """
        center = fmean(self.units.values)
        to_bound = abs(center - self.bound) - self.offset
        if self.bound < 0 or self.distrust:
            return [to_bound]
        to_margin = self.margin - abs(center) - self.offset
        return [to_bound, to_margin]

    def error(self) -> float:
        """Return the standard error of the mean: the larger one of both sets of units."""
        return max(units.error for units in self._all_units())

    def freedom(self) -> int:
        """Return the degrees of freedom: the fewer ones of both sets of units."""
        return min(units.freedom for units in self._all_units())

    def _all_units(self) -> list[Units]:
        """Return the units of all blocks, and those of the undisturbed ones if there are any."""
        if self.undisturbed is None:
            return [self.units]
        return [self.units, self.undisturbed]


def make_ratio_test(claim: events.ClaimDeclared, evidence: Evidence) -> RatioTest:
    """Return the test of a claim that has no flaw.

    The margin is the largest difference that does not matter. If a claim states a smaller one, the
    margin shrinks to that: the claim itself says that such a difference matters.
    """
    sign = 1 if claim.op == "at_least" else -1
    bound = sign * math.log(claim.bound)
    margin = math.log1p(claim.margin)
    if bound > 0:
        margin = min(margin, bound)
    undisturbed = make_undisturbed_units(evidence)
    if undisturbed is not None:
        undisturbed = undisturbed.with_sign(sign)
    return RatioTest(
        units=make_units(evidence, evidence.rounds).with_sign(sign),
        undisturbed=undisturbed,
        offset=control_offset(evidence) + preemption_cost(evidence),
        bound=bound,
        margin=margin,
        distrust=describe_distrust(claim, evidence),
        claimed_confidence=claim.confidence,
        confidence=claim.confidence,
        final_confidence=claim.confidence,
    )


def preemption_cost(evidence: Evidence) -> float:
    """Return what preemption is assumed to add to the CPU time of one arm.

    It is 0 if undisturbed blocks measure it, and for the rounds of a single process: on a
    disturbed machine, their interval is widened by far more.
    """
    if evidence.clock != "cpu" or make_undisturbed_units(evidence) is not None:
        return 0.0
    units = make_units(evidence, evidence.rounds)
    return _PREEMPTION_COST if units.name == REPEATS else 0.0


def describe_too_few(test: RatioTest) -> str:
    """Return that there are fewer units than an interval needs, or an empty string."""
    count = len(test.units.values)
    if count >= MIN_UNITS:
        return ""
    verb = "is" if count == 1 else "are"
    return f"{test.units.describe()} {verb} too few, {MIN_UNITS} are needed"


def estimate_more_repeats(test: RatioTest, reason: str) -> int | None:
    """Return how many more repeats would probably decide, if the mean stays as it is.

    None if no number can be given: one process was planned, the mean lies too close to a limit, or
    `reason` is something that repeats do not change.
    """
    units = test.units
    if units.name == ROUNDS or reason not in ("", describe_too_few(test)):
        return None
    count = len(units.values)
    if count < MIN_UNITS:
        return MIN_UNITS - count
    sd = test.error() * math.sqrt(count)
    repeat_counts = []
    for distance in test.decision_distances():
        needed = stats.units_needed(distance, sd, test.final_confidence)
        if needed is not None:
            repeat_counts.append(needed)
    if not repeat_counts:
        return None
    return max(1, min(repeat_counts) - count)
