"""The units of a measurement: the values that an interval is computed from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from tuilab.judging import stats
from tuilab.judging.evidence import MIN_UNITS, Evidence
from tuilab.record.parts import CALM_SHARE
from tuilab.text import plural

UNKNOWN_SD = 0.05  # between processes, on a machine that was never calibrated
DISTURBED_SD = 0.25  # of one process, on a disturbed machine: there its rounds err together
# `calibrate` measures small matrices. The processes of other work may differ by so much more.
OTHER_WORK = 2.5


@dataclass(frozen=True)
class Units:
    """Log ratios that are independent of one another, but for what all rounds of a process share."""

    values: list[float]
    name: str  # "repeats", or "rounds" of one process
    shared_sd: float = 0.0  # standard deviation of what all of them share
    least_sd: float = 0.0  # standard deviation that each of them has at the least

    def interval(self, confidence: float) -> tuple[float, float, float]:
        """Return the mean and the ends of its interval."""
        center, low, high = stats.t_interval(self.values, confidence, self.shared_sd, self.least_sd, self.freedom)
        if self.name == "repeats" and len(self.values) >= MIN_UNITS:
            reach = stats.skew_reach(self.values, confidence)
            low += min(reach, 0.0)
            high += max(reach, 0.0)
        return center, low, high

    @property
    def error(self) -> float:
        """The standard error of the mean of two or more."""
        return stats.standard_error(self.values, self.shared_sd, self.least_sd)

    @property
    def freedom(self) -> int:
        """The degrees of freedom of the interval.

        Rounds of one process count for no more than the fewest processes that decide: how much
        they share is known less well than how much they differ.
        """
        freedom = len(self.values) - 1
        return min(freedom, MIN_UNITS - 1) if self.name == "rounds" else freedom

    def turned(self, sign: int) -> "Units":
        """Return the units of the reciprocal ratio, if the sign is negative."""
        return replace(self, values=[sign * value for value in self.values])

    def in_words(self) -> str:
        """Return how many there are, so that nobody takes rounds for repeats."""
        count = len(self.values)
        if self.name == "repeats":
            return plural(count, "repeat")
        return f"{plural(count, 'round')} within one process"


def units_of(evidence: Evidence, rounds: Sequence[Sequence[float]]) -> Units:
    """Return the rounds of a single process, or one value for each of several processes.

    The value of a process is the mean over its rounds. Its rounds are not independent.
    """
    measured = [values for values in rounds if values]
    if len(measured) == 1 and evidence.is_single_process:
        shared_sd = single_process_sd(evidence)
        return Units(list(measured[0]), "rounds", shared_sd, evidence.tick_sd)
    return Units([fmean(values) for values in measured], "repeats", 0.0, evidence.tick_sd)


def undisturbed_units(evidence: Evidence) -> Units | None:
    """Return the same from the undisturbed blocks alone; None if too few processes have any."""
    values = evidence.undisturbed
    if len(values) < MIN_UNITS:
        return None
    return Units(list(values), "repeats")


def single_process_sd(evidence: Evidence) -> float:
    """Return the standard deviation that is assumed of what one process adds to all its rounds."""
    assumed = UNKNOWN_SD
    if evidence.process_sd is not None:
        assumed = OTHER_WORK * evidence.process_sd
    if is_disturbed(evidence):
        assumed = max(assumed, DISTURBED_SD)
    return assumed


def is_disturbed(evidence: Evidence) -> bool:
    """Return whether more blocks were disturbed than on a quiet machine."""
    return evidence.disturbed_share > CALM_SHARE
