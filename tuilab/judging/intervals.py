"""Reduce the evidence to units: the independent values that a confidence interval is computed from.

With several processes, a unit is the mean of a process. With one process, it is a round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from tuilab.judging import stats
from tuilab.judging.evidence import MIN_UNITS, Evidence
from tuilab.record.summary_parts import CALM_SHARE
from tuilab.text.display import plural

UNKNOWN_SD = 0.05  # between processes, on a machine that was never calibrated
DISTURBED_SD = 0.25  # of one process on a disturbed machine: its rounds are all wrong together
# `calibrate` multiplies small matrices. Between the processes of other work, the standard
# deviation may be so many times as large.
OTHER_WORK = 2.5
REPEATS = "repeats"
ROUNDS = "rounds"


@dataclass(frozen=True)
class Units:
    """Log ratios that are independent of one another, apart from an error that all may share."""

    values: list[float]
    name: str  # REPEATS, or ROUNDS of one process
    shared_sd: float = 0.0  # standard deviation of the error that all of them share
    least_sd: float = 0.0  # standard deviation that each of them has at the least

    def interval(self, confidence: float) -> tuple[float, float, float]:
        """Return the mean, and the lower and the upper end of its confidence interval."""
        center, low, high = stats.t_interval(
            self.values, confidence, self.shared_sd, self.least_sd, self.freedom
        )
        if self.name == REPEATS and len(self.values) >= MIN_UNITS:
            reach = stats.skew_reach(self.values, confidence)
            low += min(reach, 0.0)
            high += max(reach, 0.0)
        return center, low, high

    @property
    def error(self) -> float:
        """The standard error of the mean of two or more values."""
        return stats.standard_error(self.values, self.shared_sd, self.least_sd)

    @property
    def freedom(self) -> int:
        """The degrees of freedom of the interval.

        For the rounds of one process there are no more than for the fewest repeats that decide.
        The assumed error that the rounds share is known less well than their own spread.
        """
        freedom = len(self.values) - 1
        if self.name == ROUNDS:
            return min(freedom, MIN_UNITS - 1)
        return freedom

    def with_sign(self, sign: int) -> "Units":
        """Return the units multiplied by 1 or -1. With -1 they are those of the inverse ratio."""
        return replace(self, values=[sign * value for value in self.values])

    def describe(self) -> str:
        """Return the number of units in words that do not let rounds look like repeats."""
        count = len(self.values)
        if self.name == REPEATS:
            return plural(count, "repeat")
        return f"{plural(count, 'round')} within one process"


def make_units(evidence: Evidence, rounds: Sequence[Sequence[float]]) -> Units:
    """Return one value for each process, or the rounds themselves if one process was planned.

    `rounds` has the log ratios of each process. The value of a process is their mean, because the
    rounds of one process are not independent.
    """
    measured = [ratios for ratios in rounds if ratios]
    if len(measured) == 1 and evidence.is_single_process:
        shared_sd = assumed_process_sd(evidence)
        return Units(list(measured[0]), ROUNDS, shared_sd, evidence.tick_sd)
    return Units([fmean(ratios) for ratios in measured], REPEATS, 0.0, evidence.tick_sd)


def make_undisturbed_units(evidence: Evidence) -> Units | None:
    """Return a value for each process from its undisturbed blocks; None if too few have any."""
    values = evidence.undisturbed
    if len(values) < MIN_UNITS:
        return None
    return Units(list(values), REPEATS)


def assumed_process_sd(evidence: Evidence) -> float:
    """Return the standard deviation of the error that the rounds of a single process share.

    It has to be assumed, because one process cannot show it.
    """
    assumed_sd = UNKNOWN_SD
    if evidence.process_sd is not None:
        assumed_sd = OTHER_WORK * evidence.process_sd
    if is_machine_disturbed(evidence):
        assumed_sd = max(assumed_sd, DISTURBED_SD)
    return assumed_sd


def is_machine_disturbed(evidence: Evidence) -> bool:
    """Return whether more blocks were disturbed than on a quiet machine."""
    return evidence.disturbed_share > CALM_SHARE
