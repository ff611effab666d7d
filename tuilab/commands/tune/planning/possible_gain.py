"""Compute the most that a treatment can make a step faster, from the parts of the step.

A treatment can remove at most a certain share of certain parts. If R is the time that it can
remove, and K the time that it must keep, a step becomes at most (R + K) / K = 1 + R / K times as
fast (Amdahl's law). The parts were measured in one process, so R / K is uncertain:

- Steps differ. Neighbouring steps are not independent, for example if workers bring batches in
  bursts. So up to 10 batches of consecutive steps are formed (the method of batch means). The
  spread of their R / K gives a standard error, by the delta method, and a Student interval. Few
  steps make few batches, and a wide interval: with 2 batches, Student's t is 64.
- Processes differ. In another process, R and K may each be longer or shorter by the standard
  deviation between processes. One process cannot show it, so it is assumed. The rounds of a single
  process in a comparison get the same assumption.

Both errors concern the logarithm of R / K, so the upper end of the interval always leaves some time
for K. The interval has a confidence of 99 %. So the upper end is too low in 1 of 200 cases.

The parts are assumed to be independent: a treatment of one part does not make another part faster.
Treatments that may do so, such as another number of threads, have no bound.
"""

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import NamedTuple

from tuilab.commands.tune.planning.measured_steps import MeasuredSteps
from tuilab.judging import stats
from tuilab.judging.intervals import UNKNOWN_SD
from tuilab.text.display import percent, plural

CONFIDENCE = 0.99  # of the two-sided interval
LEAST_GAIN = 1.03  # a treatment that certainly gains less is not compared
_MOST_BATCHES = 10
_LEAST_STEPS = 2  # of each batch
_MOST_RATIO = 1e6  # a step cannot become faster than that; above, nothing is known


class PossibleGain(NamedTuple):
    """The most that a step can become faster, as a ratio, and how that is known.

    `at_most` is None if nothing bounds the gain. `why` is a clause such as "the optimizer takes 1 %
    of a step", or the reason why nothing is known. `detail` says more about a known bound.
    """

    at_most: float | None
    why: str
    detail: str = ""

    @property
    def whole_why(self) -> str:
        """The reason with its detail."""
        return "; ".join(filter(None, [self.why, self.detail]))

    @property
    def is_too_small(self) -> bool:
        """Whether the gain is certainly too small for a comparison."""
        return self.at_most is not None and self.at_most < LEAST_GAIN


def gain_without(
    steps: MeasuredSteps,
    stays: Mapping[str, float],
    subject: str,
    process_sd: float = UNKNOWN_SD,
) -> PossibleGain:
    """Return the possible gain of a treatment that shortens some parts of a step.

    `stays` has, for each of these parts, the share that stays at best: 0 if the part can vanish.
    `subject` names the parts with their verb, such as "the optimizer takes".
    """
    for part in stays:
        if part in steps.lacks:
            return PossibleGain(None, f"{part} was not timed: {steps.lacks[part]}")
    if len(steps.times) < 2 or not steps.total_ns:
        return PossibleGain(None, "too few steps were timed")
    removed = []
    kept = []
    touched_ns = 0
    for step in steps.times:
        removed_ns = 0.0
        for part, share in stays.items():
            part_ns = min(step.parts.get(part, 0), step.took_ns)
            touched_ns += part_ns
            removed_ns += part_ns * (1 - share)
        removed_ns = min(removed_ns, step.took_ns)
        removed.append(removed_ns)
        kept.append(step.took_ns - removed_ns)
    why = f"{subject} {percent(min(touched_ns / steps.total_ns, 1))} of a step"
    at_most = _upper_ratio(removed, kept, process_sd)
    detail = f"mean of {plural(len(steps.times), 'step')}"
    if at_most is None:
        reason = "which is too uncertain for a bound" if sum(kept) else "so nothing bounds the gain"
        return PossibleGain(None, f"{why}, {detail}, {reason}")
    least_stays = min(stays.values())
    if least_stays:
        detail += f", and at least {percent(least_stays)} of that time stays"
    return PossibleGain(at_most, why, detail)


def _upper_ratio(removed: list[float], kept: list[float], process_sd: float) -> float | None:
    """Return the upper end of 1 + R / K from the R and K of each step; None if it is unbounded."""
    total_removed = math.fsum(removed)
    total_kept = math.fsum(kept)
    if not total_removed:
        return 1.0
    if not total_kept:
        return None
    count = min(_MOST_BATCHES, max(2, len(removed) // _LEAST_STEPS))
    ratio = total_removed / total_kept
    squares = []
    for batch in range(count):
        steps = slice(batch * len(removed) // count, (batch + 1) * len(removed) // count)
        # The deviation of log(R / K), to the first order, that this batch contributes.
        deviation = sum(removed[steps]) / total_removed - sum(kept[steps]) / total_kept
        squares.append(deviation**2)
    error = math.sqrt(math.fsum(squares) * count / (count - 1))
    probability = (1 + CONFIDENCE) / 2
    step_reach = stats.t_quantile(probability, count - 1) * error
    reach = math.hypot(step_reach, process_reach(process_sd))
    if math.log(ratio) + reach > math.log(_MOST_RATIO):
        return None
    return 1 + ratio * math.exp(reach)


def process_reach(process_sd: float) -> float:
    """Return how far the logarithm of a ratio of two times reaches, because processes differ.

    Each of the two times varies by `process_sd` of itself.
    """
    return NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(2) * process_sd
