"""A verdict with what it rests on."""

from dataclasses import dataclass

from tuilab.judging.measure import Measure
from tuilab.record.verdicts import Verdict


@dataclass(frozen=True)
class Judgement:
    """A verdict, why, and for a ratio what the numbers are: estimate and interval, and what this run could have seen."""

    verdict: Verdict
    why: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    noise_floor: float | None = None  # the end of the A/A interval that is farther from 1, as a ratio minus 1
    smallest_effect: float | None = None  # that would have been seen four times in five, as a ratio minus 1
    more_repeats: int | None = None  # until it can be decided; None: cannot be known, or not needed
    units: int = 0
    unit: str = ""  # "repeats", or "rounds" of one process
    confidence: float | None = None  # of the interval: more than claimed where there are several claims or looks
    measure: Measure = "wall"

    @property
    def level(self) -> str:
        """The confidence of the interval in words, to four digits, or as many as it takes to differ from certainty."""
        percent = 100 * (self.confidence or 0.0)
        return f"{percent:.4g} %" if percent < 99.99 else f"{percent:.7g} %"
