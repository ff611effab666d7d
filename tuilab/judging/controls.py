"""What stands against a measurement before its numbers are looked at: controls that failed, and what was disturbed."""

import math

from tuilab.judging import stats
from tuilab.judging.evidence import MIN_UNITS, Evidence, units_of
from tuilab.record import events

_MOST_DISTURBED = 0.3  # of the blocks
_MOST_OBSERVED = 0.01  # of a step, spent on recording it
_MOST_FAILED = 1 / 3  # of the repeats
_LEAST_SEEN = 0.5  # of the known delay


def failed_control(claim: events.ClaimDeclared, evidence: Evidence) -> str:
    """Return which control failed, or nothing."""
    if evidence.difference:
        return evidence.difference
    if not evidence.observer_share <= _MOST_OBSERVED:
        return f"recording took {100 * evidence.observer_share:.2g} % of a step"
    same, _ = units_of(evidence.same)
    if len(same) >= MIN_UNITS:
        center, low, high = stats.t_interval(same, claim.confidence)
        if max(low, -high) > math.log1p(claim.margin):
            return f"an arm against itself came out {math.exp(center):.3g} times as long: the control failed"
    return ""


def distrust(claim: events.ClaimDeclared, evidence: Evidence) -> str:
    """Return why this run could have missed a difference: the known delay was not seen, or far too small."""
    delayed, _ = units_of(evidence.delayed)
    if len(delayed) < MIN_UNITS:
        return "whether a known delay is seen was not measured, so that no difference must not be claimed"
    center, low, _ = stats.t_interval(delayed, claim.confidence)
    if low > 0 and center >= _LEAST_SEEN * math.log1p(evidence.delay):
        return ""
    return f"the known delay of {100 * evidence.delay:g} % was not seen, so that no difference must not be claimed"


def doubt(evidence: Evidence) -> str:
    """Return why the measurement cannot carry a verdict, or nothing."""
    failed, finished = evidence.failed_repeats, sum(bool(values) for values in evidence.rounds)
    if evidence.lacks:
        return evidence.lacks
    if failed > _MOST_FAILED * (failed + finished):
        return f"only {finished} of {failed + finished} repeats were measured"
    if not evidence.disturbed_share <= _MOST_DISTURBED:
        return f"the machine is too noisy: {100 * evidence.disturbed_share:.0f} % of the blocks were disturbed"
    return ""
