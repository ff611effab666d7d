"""The units of a measurement: the values that an interval is reckoned from, and what they cannot show of themselves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from tuilab.judging import stats
from tuilab.judging.evidence import Evidence
from tuilab.text import plural

UNKNOWN_LUCK = 0.05  # of a process, on a box that was never calibrated


@dataclass(frozen=True)
class Units:
    """Log ratios that are independent of one another, but for the luck of the process that all rounds share."""

    values: list[float]
    name: str  # "repeats", or "rounds" of one process
    luck: float = 0.0  # that they share: a standard deviation
    least: float = 0.0  # that one of them varies by: a standard deviation

    def interval(self, confidence: float) -> tuple[float, float, float]:
        """Return the mean and the ends of its interval."""
        return stats.t_interval(self.values, confidence, self.luck, self.least)

    @property
    def error(self) -> float:
        """The standard error of the mean of two or more."""
        return stats.standard_error(self.values, self.luck, self.least)

    @property
    def freedom(self) -> int:
        return len(self.values) - 1

    def turned(self, sign: int) -> "Units":
        return replace(self, values=[sign * value for value in self.values])

    def in_words(self) -> str:
        """Return how many there are, so that nobody takes rounds for repeats."""
        count = len(self.values)
        return plural(count, "repeat") if self.name == "repeats" else f"{plural(count, 'round')} within one process"


def units_of(evidence: Evidence, rounds: Sequence[Sequence[float]]) -> Units:
    """Return the rounds of a single process, or of several one value each: values of one process are not independent.

    Of CPU times it is the median of the rounds: a block that was taken off its core finds its caches cold.
    """
    measured = [values for values in rounds if values]
    if len(measured) == 1 and evidence.is_single_process:
        luck = UNKNOWN_LUCK if evidence.process_sd is None else evidence.process_sd
        return Units(list(measured[0]), "rounds", luck, evidence.tick_sd)
    center = median if evidence.measure == "cpu" else fmean
    return Units([center(values) for values in measured], "repeats", 0.0, evidence.tick_sd)
