"""The verdict on a claim, together with its explanation and its numbers."""

from dataclasses import dataclass

from tuilab.judging.clock import ClockKind
from tuilab.record.verdicts import Verdict


@dataclass(frozen=True)
class Judgement:
    """A verdict and why. A claim about a ratio also has numbers.

    Each field is stored under its name in the record of the verdict, so it cannot be renamed.
    """

    verdict: Verdict
    why: str = ""
    estimate: float | None = None
    low: float | None = None  # end of the confidence interval
    high: float | None = None
    noise_floor: float | None = None  # how far the A/A interval reaches from 1, as a ratio minus 1
    smallest_effect: float | None = None  # detected with a chance of 80 %, as a ratio minus 1
    more_repeats: int | None = None  # to decide the claim; None: unknown, or already decided
    units: int = 0
    unit: str = ""  # "repeats", or "rounds" of one process
    confidence: float | None = None  # of the interval; several claims or analyses raise it
    measure: ClockKind = "wall"

    @property
    def level(self) -> str:
        """The confidence in percent: four digits, or seven if four would read as certainty."""
        percent = 100 * (self.confidence or 0.0)
        return f"{percent:.4g} %" if percent < 99.99 else f"{percent:.7g} %"
