"""Check the controls and the sensors: reasons against a verdict that do not depend on its numbers.

Each function returns a reason as words for the user. An empty string means that there is none.
"""

import math
from collections.abc import Sequence
from statistics import fmean

from tuilab.judging import stats
from tuilab.judging.evidence import MIN_UNITS, Evidence
from tuilab.judging.intervals import make_units
from tuilab.record import events
from tuilab.text.display import percent, plural

_MAX_DISTURBED_SHARE = 0.3  # of the blocks
_MAX_UNKNOWN_SHARE = 0.3  # of the blocks on a GPU
_MAX_OBSERVER_SHARE = 0.01  # of a step, spent on recording it
_MAX_FAILED_SHARE = 1 / 3  # of the repeats
_MIN_DETECTED_SHARE = 0.5  # of the injected delay
_MAX_P_VALUE = 0.01  # for a shift of the ratio to count
_MAX_CHANGE = 0.5  # of the margin, by which the ratio may change in the course of a race
# Standard errors that the A/A control is off by chance. With these, simulated claims at their bound
# are decided in 3.2 % of the runs without a bias, and in at most 5 % with one of any size.
_CHANCE_ERRORS = 1.0
_CHANCE_ERRORS_DOUBLED = 1.5  # if an arm of the claim was timed twice in every process
_MIN_ROUNDS_FOR_ERROR = 3  # fewer rounds show a change, but not how uncertain it is


# ---- a failed or missing control


def describe_failed_control(claim: events.ClaimDeclared, evidence: Evidence) -> str:
    """Return which control failed, or an empty string.

    If one failed, nothing that was measured can be trusted.
    """
    if evidence.difference:
        return evidence.difference
    if not evidence.observer_share <= _MAX_OBSERVER_SHARE:  # NaN fails as well
        return f"recording took {percent(evidence.observer_share)} of a step"
    same = make_units(evidence, evidence.same)
    if len(same.values) < MIN_UNITS:
        return ""
    center, low, high = same.interval(claim.confidence)
    if max(low, -high) > math.log1p(claim.margin):
        ratio = math.exp(center)
        return f"an arm against itself came out {ratio:.3g} times as long: the control failed"
    return ""


def describe_missing_control(evidence: Evidence) -> str:
    """Return that the A/A control was not measured, or not often enough; empty if it was."""
    same = make_units(evidence, evidence.same)
    if len(same.values) >= MIN_UNITS:
        return ""
    measured = "not measured"
    if same.values:
        measured = f"measured in only {same.describe()}"
    return f"no control: an arm against itself was {measured}"


def control_offset(evidence: Evidence) -> float:
    """Return by how much an interval is widened because the A/A control was off; 0 if it was not.

    Whatever moved the control may have moved the arms as well, in every process alike, and no
    interval shows that. An arm that was timed twice in each round lies in the middle between both
    instances, so that half of their difference is left. If the control is off by little more than
    its own standard error, that is most likely chance, and the interval stays as it is.
    """
    same = make_units(evidence, evidence.same)
    if len(same.values) < MIN_UNITS:
        return 0.0
    center = abs(fmean(same.values))
    chance_errors = _CHANCE_ERRORS if evidence.doubled_share < 1 else _CHANCE_ERRORS_DOUBLED
    if center <= chance_errors * same.error:
        return 0.0
    return center * (1 - evidence.doubled_share / 2)


# ---- an injected delay that was not detected


def describe_distrust(claim: events.ClaimDeclared, evidence: Evidence) -> str:
    """Return why the run could have missed a difference, and what cannot be claimed therefore.

    Empty if it could not.
    """
    missed_delay = _describe_missed_delay(claim, evidence)
    if not missed_delay:
        return ""
    return f"{missed_delay}, so that {_describe_consequence(claim)}"


def _describe_consequence(claim: events.ClaimDeclared) -> str:
    """Return what may not be claimed if a difference could have been missed.

    A claim such as "at least 0.9" allows an arm to be a little worse. It would be supported by a
    run that detects nothing.
    """
    if claim.op == "at_most":
        allows_worse = claim.bound > 1
        worse = claim.over
    else:
        allows_worse = claim.bound < 1
        worse = claim.under
    if allows_worse:
        return f"{worse} may be worse than it looks"
    return "no difference must not be claimed"


def _describe_missed_delay(claim: events.ClaimDeclared, evidence: Evidence) -> str:
    """Return that the injected delay was not detected, or that no control shows what would be.

    Empty if it was detected. A function may leave work undone when its clock stops; a detected
    delay shows that this one does not. A command needs no delay: its steps follow each other, so
    that the delay of a step is part of its time. How small a difference its processes can show
    follows from their spread, which the interval contains. For a command, the A/A control must not
    be missing.
    """
    if not evidence.needs_delay:
        return describe_missing_control(evidence)
    delayed = make_units(evidence, evidence.delayed)
    if len(delayed.values) < MIN_UNITS:
        return "whether a known delay is seen was not measured"
    center, low, _ = delayed.interval(claim.confidence)
    if low > 0 and center >= _MIN_DETECTED_SHARE * math.log1p(evidence.delay):
        return ""
    return f"the known delay of {percent(evidence.delay)} was not seen"


# ---- a measurement that cannot carry a verdict


def describe_doubt(claim: events.ClaimDeclared, evidence: Evidence) -> str:
    """Return why the measurement cannot carry a verdict, although no control failed; or ""."""
    if evidence.lacks:
        return evidence.lacks
    failed = evidence.failed_repeats
    measured = len([ratios for ratios in evidence.rounds if ratios])
    total = failed + measured
    if failed > _MAX_FAILED_SHARE * total:
        return f"only {measured} of {total} repeats were measured"
    is_quiet = evidence.disturbed_share <= _MAX_DISTURBED_SHARE
    if evidence.clock == "wall" and not is_quiet:
        disturbed = f"{100 * evidence.disturbed_share:.0f} % of the blocks were disturbed"
        return f"the machine is too noisy: {disturbed}"
    if evidence.starved:
        return evidence.starved
    return describe_shift(claim, evidence)


def describe_shift(
    claim: events.ClaimDeclared, evidence: Evidence, max_p_value: float = _MAX_P_VALUE
) -> str:
    """Return what may have shifted the ratio in every process alike.

    No interval shows such a shift. `max_p_value` says how seldom chance may look like it.
    """
    one_sided = _describe_one_sided_disturbance(claim, evidence, max_p_value)
    return one_sided or _describe_change(claim, evidence, max_p_value)


def _describe_one_sided_disturbance(
    claim: events.ClaimDeclared, evidence: Evidence, max_p_value: float
) -> str:
    """Return that one arm was disturbed more often than the other, or an empty string.

    CPU time does not contain the time that other processes took, so this does not matter to it.
    """
    marks = [fmean(of_process) for of_process in evidence.marks if of_process]
    if evidence.clock == "cpu" or len(marks) < MIN_UNITS:
        return ""
    center = fmean(marks)
    p_value = stats.p_value(abs(center), stats.standard_error(marks), len(marks) - 1)
    if p_value > max_p_value:
        return ""
    disturbed, other = claim.under, claim.over
    if center > 0:
        disturbed, other = claim.over, claim.under
    return f"{disturbed} is disturbed more than {other}: it may be its own doing"


def _describe_change(claim: events.ClaimDeclared, evidence: Evidence, max_p_value: float) -> str:
    """Return that the ratio still changed in the course of a race, or an empty string.

    An arm that warms up slowly does that, in all processes or in some of them. The first shows in
    the mean of the changes, the second in the changes of single processes.
    """
    if len(evidence.rounds) < MIN_UNITS and not evidence.is_single_process:
        return ""
    # Each test gets half, so that both together find a change by chance as often as one would.
    change_of_all = _change_of_all(evidence.rounds, max_p_value / 2)
    change_of_some = _change_of_some(evidence.rounds, max_p_value / 2)
    change = max(change_of_all, change_of_some)
    if change <= _MAX_CHANGE * math.log1p(claim.margin):
        return ""
    return f"still changing by {percent(math.expm1(change))} in a race"


def _change_of_all(rounds: Sequence[Sequence[float]], max_p_value: float) -> float:
    """Return by how much the ratio changes in a race, if all processes together show it, else 0."""
    changes = []
    for ratios in rounds:
        if len(ratios) >= 2:
            changes.append(stats.slope(ratios) * (len(ratios) - 1))
    if len(changes) < MIN_UNITS:
        return 0.0
    change = abs(fmean(changes))
    p_value = stats.p_value(change, stats.standard_error(changes), len(changes) - 1)
    return 0.0 if p_value > max_p_value else change


def _change_of_some(rounds: Sequence[Sequence[float]], max_p_value: float) -> float:
    """Return the sum of the changes that single processes show, divided by all processes."""
    long_races = [ratios for ratios in rounds if len(ratios) >= _MIN_ROUNDS_FOR_ERROR]
    total = 0.0
    for ratios in long_races:
        slope = stats.slope(ratios)
        steps = len(ratios) - 1
        change = abs(steps * slope)
        error = steps * stats.slope_error(ratios, slope)
        # Divided by the number of races, of which any may seem to change by chance (Bonferroni).
        if stats.p_value(change, error, steps - 1) <= max_p_value / len(long_races):
            total += change
    return total / max(len(rounds), 1)


# ---- facts that do not speak against a verdict


def describe_circumstances(evidence: Evidence) -> list[str]:
    """Return what a reader of the verdict should know about the measurement."""
    notes = _describe_clock(evidence)
    if evidence.host_bound:
        notes.append(_describe_host_bound(evidence.host_bound))
    if evidence.is_one_draw:
        same_value = "every process of an arm ended at the same value, as with one seed"
        notes.append(f"{same_value}: of other seeds this says nothing")
    if evidence.unguarded:
        notes.append(evidence.unguarded)
    if evidence.unknown_clocks_share > _MAX_UNKNOWN_SHARE:
        notes.append("the clocks of the GPU were not watched")
    if evidence.unknown_tenants_share > _MAX_UNKNOWN_SHARE:
        notes.append("whether others used the GPU is not known")
    if evidence.failed_repeats:
        notes.append(f"{plural(evidence.failed_repeats, 'repeat')} failed")
    if evidence.unsettled_repeats:
        repeats = plural(evidence.unsettled_repeats, "repeat")
        notes.append(f"warm-up did not settle in {repeats}")
    return notes


def _describe_host_bound(share_of_arm: dict[str, float]) -> str:
    """Return which arms are host-bound, and which share of their time the GPU works at most."""
    arms = " and ".join(share_of_arm)
    verb = "is" if len(share_of_arm) == 1 else "are"
    shares = " and ".join(f"{100 * share:.0f} %" for share in share_of_arm.values())
    return f"{arms} {verb} host-bound: the GPU works {shares} of the time at most"


def _describe_clock(evidence: Evidence) -> list[str]:
    """Return which clock judged, unless it was wall time on a quiet machine."""
    disturbed_steps_share = evidence.clock_choice.disturbed_share
    if disturbed_steps_share is None:
        if evidence.clock == "wall":
            return []
        disturbed = f"{100 * evidence.disturbed_share:.0f} % of the blocks were disturbed"
        return [f"judged on CPU time: {disturbed}"]
    disturbed = f"{100 * disturbed_steps_share:.0f} % of the steps were disturbed"
    if evidence.clock == "cpu":
        return [f"judged on CPU time: {disturbed}"]
    return [f"judged on the wall clock, though {disturbed}: {evidence.clock_choice.why_wall}"]
