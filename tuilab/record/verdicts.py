"""Defines the seven verdicts on a claim, and the words that are shown without a verdict."""

from enum import StrEnum

# Changes whenever the same measurements could get another verdict or other numbers.
RULE = "tuilab-7"
# a claim without a verdict
NOT_JUDGED = "not judged"
NOT_DECIDED = "not decided yet"  # while its run is in progress
# a run in one word, as in the catalogue
FAILED = "FAILED"
RUNNING = "running"
QUEUED = "queued"


class Verdict(StrEnum):
    """What can be said of a claim."""  # printed by the JSON schemas

    SUPPORTED = "SUPPORTED"
    WEAKER = "WEAKER THAN CLAIMED"
    REFUTED = "REFUTED"
    NO_DIFFERENCE = "NO MEANINGFUL DIFFERENCE"
    INCONCLUSIVE = "INCONCLUSIVE"
    INVALID = "INVALID"
    NOT_TESTABLE = "NOT TESTABLE HERE"


# Begins the reason why a claim was not judged, if it is about other parameters than the run has.
CLAIMED_FOR = "claimed for "

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
    """Say whether a claim was not judged because it is about other parameters than the run has."""
    return verdict == Verdict.NOT_TESTABLE and reason.startswith(CLAIMED_FOR)


def is_against(verdict: str, bound: float | None = None) -> bool:
    """Say whether a verdict contradicts its claim.

    `NO MEANINGFUL DIFFERENCE` contradicts a claim of a difference, but not one of "no slower",
    whose bound is 1.
    """
    if verdict == Verdict.NO_DIFFERENCE:
        return bound != 1
    return verdict in (Verdict.REFUTED, Verdict.WEAKER, Verdict.INVALID)
