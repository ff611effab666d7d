"""What can be said of a claim: the seven verdicts in their order, and the words that stand where there is none."""

from enum import StrEnum

RULE = (
    "tuilab-7"  # changes whenever the same measurements could get another verdict or other numbers
)
NOT_JUDGED, NOT_DECIDED = (
    "not judged",
    "not decided yet",
)  # of a claim; the latter while its run goes on
FAILED, RUNNING, QUEUED = (
    "FAILED",
    "running",
    "queued",
)  # of a run that is told in one word, as the catalogue does


class Verdict(StrEnum):
    """What can be said of a claim."""

    SUPPORTED = "SUPPORTED"
    WEAKER = "WEAKER THAN CLAIMED"
    REFUTED = "REFUTED"
    NO_DIFFERENCE = "NO MEANINGFUL DIFFERENCE"
    INCONCLUSIVE = "INCONCLUSIVE"
    INVALID = "INVALID"
    NOT_TESTABLE = "NOT TESTABLE HERE"


CLAIMED_FOR = (
    "claimed for "  # begins the reason of a claim that is about other values than the run has
)

DECISIONS = frozenset({Verdict.SUPPORTED, Verdict.WEAKER, Verdict.REFUTED, Verdict.NO_DIFFERENCE})
WORST_FIRST = (
    Verdict.INVALID,
    Verdict.REFUTED,
    Verdict.INCONCLUSIVE,
    Verdict.WEAKER,
    Verdict.NO_DIFFERENCE,
    Verdict.SUPPORTED,
    Verdict.NOT_TESTABLE,
)


def is_about_other_values(verdict: str, reason: str) -> bool:
    """Say whether a claim was not judged because it is about other values than the run has."""
    return verdict == Verdict.NOT_TESTABLE and reason.startswith(CLAIMED_FOR)


def is_against(verdict: str, bound: float | None = None) -> bool:
    """Say whether a verdict stands against its claim; no difference does where the claim is of one, not of "no slower"."""
    if verdict == Verdict.NO_DIFFERENCE:
        return bound != 1
    return verdict in (Verdict.REFUTED, Verdict.WEAKER, Verdict.INVALID)
