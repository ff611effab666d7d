"""Find the outcome of a treatment, a change to a training that `tuilab tune` tries on a script.

An outcome is one of the seven verdicts, or one of the words below. A treatment with one of these
words was not judged, except if it is `FASTER BUT LEARNING NOT SHOWN`.
"""

from enum import StrEnum
from typing import NamedTuple

from tuilab.record import verdicts
from tuilab.record.events import Learning, VerdictReached
from tuilab.record.finding_words import why_not_judged
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.record.tuning.stages import COMPARING, SCREENING
from tuilab.record.verdicts import Verdict


class Outcome(StrEnum):
    """The outcomes of a treatment that are not verdicts."""

    NOT_APPLICABLE = "NOT APPLICABLE"
    ALREADY_SET = "ALREADY SET"
    OUT_OF_MEMORY = "OUT OF MEMORY"
    OVER_TIME = "OVER TIME"
    FAILED = verdicts.FAILED
    NOT_COMPARED = "NOT COMPARED"
    LEARNING_NOT_SHOWN = "FASTER BUT LEARNING NOT SHOWN"


class TreatmentOutcome(NamedTuple):
    """The outcome of a treatment and the reason for it; both are empty until it is known."""

    outcome: str = ""
    why: str = ""


# Why no claim about such a treatment is supported: the reason of its verdict begins with this.
LEARNING_DOUBT = "it rounds otherwise, and the first steps cannot show what that costs later"
_BOUND = "it learns from the same data again and again: it shows what other treatments can gain"


def outcome_of(arm: str, summary: RunSummary) -> TreatmentOutcome:
    """Return the outcome of a treatment or of a combination, by the name of its arm."""
    tuning = summary.tuning
    tried = tuning.tried.get(arm)
    if tried is not None and tried.outcome:
        return TreatmentOutcome(tried.outcome, tried.why)
    planned = tuning.treatments.get(arm)
    if planned is not None and planned.outcome:
        return TreatmentOutcome(planned.outcome, planned.why)
    claim = claim_of_arm(arm, summary)
    if claim is not None and claim.verdict is not None:
        return _judged_outcome(claim, learning_of(arm, summary))
    if planned is not None and planned.learns == "bound" and tried is not None:
        return TreatmentOutcome(Outcome.NOT_COMPARED, _BOUND)
    if not summary.is_over:
        return TreatmentOutcome()
    return TreatmentOutcome(Outcome.NOT_COMPARED, _why_not_compared(arm, claim, summary))


def claim_of_arm(arm: str, summary: RunSummary, over: str = "") -> Claim | None:
    """Return the claim that an arm is faster than the unchanged script, or than the arm `over`."""
    if not over and arm in summary.claims:
        return summary.claims[arm]
    other = over or base_of(summary)
    for claim in summary.claims.values():
        declared = claim.declared
        if declared is not None and (declared.over, declared.under) == (other, arm):
            return claim
    return None


def base_of(summary: RunSummary) -> str:
    """Return the arm of the unchanged script; empty before the first comparison."""
    for _, race in summary.races:
        if race.base:
            return race.base
    return ""


def learning_of(arm: str, summary: RunSummary) -> Learning:
    """Return how a treatment or a combination changes what the script learns."""
    planned = summary.tuning.treatments.get(arm)
    if planned is not None:
        return planned.learns
    for combined in summary.tuning.combinations:
        if combined.arm == arm:
            return combined.learns
    return "same"


def is_only_learning_open(verdict: VerdictReached, learns: str) -> bool:
    """Return whether a treatment is surely faster, and INCONCLUSIVE because it rounds otherwise.

    With another reason, such as a busy machine, it is not sure that the treatment is faster.
    """
    is_faster = verdict.low is not None and verdict.low > 1
    is_open = verdict.verdict == Verdict.INCONCLUSIVE and verdict.why.startswith(LEARNING_DOUBT)
    return is_open and is_faster and learns == "other rounding"


def _judged_outcome(claim: Claim, learns: Learning) -> TreatmentOutcome:
    """Return the outcome of a treatment whose claim has a verdict."""
    verdict = claim.verdict
    assert verdict is not None
    if is_only_learning_open(verdict, learns):
        return TreatmentOutcome(Outcome.LEARNING_NOT_SHOWN, verdict.why)
    return TreatmentOutcome(verdict.verdict, verdict.why)


def _why_not_compared(arm: str, claim: Claim | None, summary: RunSummary) -> str:
    """Return why an arm of a run that has ended has no verdict."""
    if claim is not None:
        return why_not_judged(claim, summary)
    if arm in summary.tuning.tried or arm not in summary.tuning.treatments:
        if COMPARING in summary.tuning.spent_stages:
            return "no budget was left to compare it"
        return "the run ended before it was compared"
    if SCREENING in summary.tuning.spent_stages:
        return "no budget was left to try it"
    return "the run ended before it was tried"
