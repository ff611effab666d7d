"""What can be said of a claim: the seven verdicts, and a judgement with its numbers."""

from dataclasses import dataclass
from enum import StrEnum

RULE = "tuilab-3"  # changes whenever the same measurements could get another verdict


class Verdict(StrEnum):
    """What can be said of a claim."""

    SUPPORTED = "SUPPORTED"
    WEAKER = "WEAKER THAN CLAIMED"
    REFUTED = "REFUTED"
    NO_DIFFERENCE = "NO MEANINGFUL DIFFERENCE"
    INCONCLUSIVE = "INCONCLUSIVE"
    INVALID = "INVALID"
    NOT_TESTABLE = "NOT TESTABLE HERE"


DECISIONS = frozenset({Verdict.SUPPORTED, Verdict.WEAKER, Verdict.REFUTED, Verdict.NO_DIFFERENCE})


def is_against(verdict: str, bound: float | None = None) -> bool:
    """Say whether a verdict stands against its claim; no difference does where the claim is of one, not of "no slower"."""
    if verdict == Verdict.NO_DIFFERENCE:
        return bound != 1
    return verdict in (Verdict.REFUTED, Verdict.WEAKER, Verdict.INVALID)


@dataclass(frozen=True)
class Judgement:
    """A verdict, why, and for a ratio what the numbers are: estimate and interval, and what this run could have seen."""

    verdict: Verdict
    why: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    noise_floor: float | None = None  # half the width of the A/A interval, as a ratio minus 1
    smallest_effect: float | None = None  # that would have been seen four times in five, as a ratio minus 1
    more_repeats: int | None = None  # until it can be decided; None: cannot be known, or not needed
    units: int = 0
    unit: str = ""  # "repeats", or "rounds" of one process
    confidence: float | None = None  # of the interval: more than claimed where there are several claims or looks
