"""What stands against a measurement before its numbers are looked at: controls that failed, and what was disturbed."""

import math
from collections.abc import Sequence
from statistics import fmean

from tuilab.judging import stats
from tuilab.judging.evidence import MIN_UNITS, Evidence
from tuilab.judging.units import units_of
from tuilab.record import events
from tuilab.text import percent, plural

_MOST_DISTURBED = 0.3  # of the blocks
_MOST_UNKNOWN = 0.3  # of the blocks on a GPU
_MOST_OBSERVED = 0.01  # of a step, spent on recording it
_MOST_FAILED = 1 / 3  # of the repeats
_LEAST_SEEN = 0.5  # of the known delay
_RARE = 0.01  # a chance, below which it is none
_MOST_CHANGED = 0.5  # of the margin, in the course of a race
# Standard errors that the A/A control is off by chance. With these, simulated claims at their bound
# are decided in 3.2 % of the runs without a bias, and in at most 5 % with one of any size.
_LIKELY_OFF = 1.0
_LIKELY_OFF_DOUBLED = 1.5  # if an arm of the claim was timed twice in every process
_LONG_RACE = 3  # rounds, of which a change has an error of its own


def failed_control(claim: events.ClaimDeclared, evidence: Evidence) -> str:
    """Return which control failed, or nothing."""
    if evidence.difference:
        return evidence.difference
    if not evidence.observer_share <= _MOST_OBSERVED:
        return f"recording took {percent(evidence.observer_share)} of a step"
    same = units_of(evidence, evidence.same)
    if len(same.values) >= MIN_UNITS:
        center, low, high = same.interval(claim.confidence)
        if max(low, -high) > math.log1p(claim.margin):
            return f"an arm against itself came out {math.exp(center):.3g} times as long: the control failed"
    return ""


def lacking_control(evidence: Evidence) -> str:
    """Return that no arm was held against itself, or not often enough, or nothing."""
    same = units_of(evidence, evidence.same)
    if len(same.values) >= MIN_UNITS:
        return ""
    return f"no control: an arm against itself was {f'measured in only {same.in_words()}' if same.values else 'not measured'}"


def offset(evidence: Evidence) -> float:
    """Return by how much an interval is wider, because the A/A control was off; 0 if it was not.

    Whatever moved the control may have moved the arms as well, in every process alike, and no
    interval shows that. An arm that was timed twice in each round lies in the middle between both
    instances, so that half of their difference is left. If the control is off by little more than
    its own standard error, that is most likely chance, and the interval stays as it is.
    """
    same = units_of(evidence, evidence.same)
    if len(same.values) < MIN_UNITS:
        return 0.0
    center = abs(fmean(same.values))
    likely = _LIKELY_OFF if evidence.doubled_share < 1 else _LIKELY_OFF_DOUBLED
    if center <= likely * same.error:
        return 0.0
    return center * (1 - evidence.doubled_share / 2)


def distrust(claim: events.ClaimDeclared, evidence: Evidence) -> str:
    """Return why this run could have missed a difference, and what is not said then; nothing where it sees well enough."""
    missed = _missed_delay(claim, evidence)
    return f"{missed}, so that {_unsaid(claim)}" if missed else ""


def _unsaid(claim: events.ClaimDeclared) -> str:
    """Return what may not be said by who could have missed a difference: that there is none, or no large one."""
    allows_worse = claim.bound > 1 if claim.op == "at_most" else claim.bound < 1
    worse = claim.over if claim.op == "at_most" else claim.under
    return f"{worse} may be worse than it looks" if allows_worse else "no difference must not be claimed"


def _missed_delay(claim: events.ClaimDeclared, evidence: Evidence) -> str:
    """Return that the known delay was not seen, or far too small.

    A function may leave work undone when its clock stops, and a delay shows that it does not. The steps of a command follow
    each other, so that what delays one is in its time; how small a difference its processes can show, their spread says, on
    which the interval rests. There it is the arm against itself that must not be missing.
    """
    if not evidence.needs_delay:
        return lacking_control(evidence)
    delayed = units_of(evidence, evidence.delayed)
    if len(delayed.values) < MIN_UNITS:
        return "whether a known delay is seen was not measured"
    center, low, _ = delayed.interval(claim.confidence)
    if low > 0 and center >= _LEAST_SEEN * math.log1p(evidence.delay):
        return ""
    return f"the known delay of {percent(evidence.delay)} was not seen"


def doubt(claim: events.ClaimDeclared, evidence: Evidence) -> str:
    """Return why the measurement cannot carry a verdict, or nothing."""
    failed, finished = evidence.failed_repeats, sum(bool(values) for values in evidence.rounds)
    if evidence.lacks:
        return evidence.lacks
    if failed > _MOST_FAILED * (failed + finished):
        return f"only {finished} of {failed + finished} repeats were measured"
    if evidence.measure == "wall" and not evidence.disturbed_share <= _MOST_DISTURBED:
        return f"the machine is too noisy: {100 * evidence.disturbed_share:.0f} % of the blocks were disturbed"
    return evidence.starved or moved(claim, evidence)


def moved(claim: events.ClaimDeclared, evidence: Evidence, chance: float = _RARE) -> str:
    """Return what may have moved the ratio in every process alike, which luck does with less than a chance, or nothing."""
    return _one_sided(claim, evidence, chance) or _changing(claim, evidence, chance)


def _one_sided(claim: events.ClaimDeclared, evidence: Evidence, chance: float) -> str:
    """Return that one arm is disturbed more than the other one; of CPU time others take nothing."""
    marks = [fmean(turns) for turns in evidence.marks if turns]
    if evidence.measure == "cpu" or len(marks) < MIN_UNITS:
        return ""
    if stats.p_value(abs(fmean(marks)), stats.standard_error(marks), len(marks) - 1) > chance:
        return ""
    more, less = (claim.over, claim.under) if fmean(marks) > 0 else (claim.under, claim.over)
    return f"{more} is disturbed more than {less}: it may be its own doing"


def _changing(claim: events.ClaimDeclared, evidence: Evidence, chance: float) -> str:
    """Return that the ratio still changed in the course of a race, or nothing.

    An arm that warms up slowly does that, in all processes or in some of them. The first shows in
    the mean of the changes, the second in the changes of single processes.
    """
    if len(evidence.rounds) < MIN_UNITS and not evidence.is_single_process:
        return ""
    # Both tests together may find a change by chance as often as one of them alone.
    change_of_all = _change_of_all(evidence.rounds, chance / 2)
    change_of_some = _change_of_some(evidence.rounds, chance / 2)
    change = max(change_of_all, change_of_some)
    if change <= _MOST_CHANGED * math.log1p(claim.margin):
        return ""
    return f"still changing by {percent(math.expm1(change))} in a race"


def _change_of_all(rounds: Sequence[Sequence[float]], chance: float) -> float:
    """Return by how much the ratio changes in a race, if all processes together show it, else 0."""
    changes = []
    for values in rounds:
        if len(values) >= 2:
            changes.append(stats.slope(values) * (len(values) - 1))
    if len(changes) < MIN_UNITS:
        return 0.0
    change = abs(fmean(changes))
    is_by_chance = stats.p_value(change, stats.standard_error(changes), len(changes) - 1) > chance
    return 0.0 if is_by_chance else change


def _change_of_some(rounds: Sequence[Sequence[float]], chance: float) -> float:
    """Return what the changes that single processes show come to in the mean over all of them.

    Two rounds show no change of their own: they have no spread beside it.
    """
    long_races = [values for values in rounds if len(values) >= _LONG_RACE]
    total = 0.0
    for values in long_races:
        slope = stats.slope(values)
        turns = len(values) - 1
        change = abs(turns * slope)
        error = turns * stats.slope_error(values, slope)
        # Each process has its share of the chance that any of them seems to change.
        if stats.p_value(change, error, turns - 1) <= chance / len(long_races):
            total += change
    return total / max(len(rounds), 1)


def told(evidence: Evidence) -> list[str]:
    """Return what of the measurement a reader of the verdict should know, though nothing of it stands against one."""
    parts = []
    parts += _describe_clock(evidence)
    if evidence.host_bound:
        verb = "is" if len(evidence.host_bound) == 1 else "are"
        shares = " and ".join(f"{100 * share:.0f} %" for share in evidence.host_bound.values())
        parts.append(f"{' and '.join(evidence.host_bound)} {verb} host-bound: the GPU works {shares} of the time at most")
    if evidence.is_one_draw:
        parts.append("every process of an arm ended at the same value, as with one seed: of other seeds this says nothing")
    if evidence.unguarded:
        parts.append(evidence.unguarded)
    if evidence.unknown_clocks_share > _MOST_UNKNOWN:
        parts.append("the clocks of the GPU were not watched")
    if evidence.unknown_tenants_share > _MOST_UNKNOWN:
        parts.append("whether others used the GPU is not known")
    if evidence.failed_repeats:
        parts.append(f"{plural(evidence.failed_repeats, 'repeat')} failed")
    if evidence.unsettled_repeats:
        parts.append(f"warm-up did not settle in {plural(evidence.unsettled_repeats, 'repeat')}")
    return parts


def _describe_clock(evidence: Evidence) -> list[str]:
    """Return which clock judged, where it was not plain that it is the wall clock."""
    steps_share = evidence.choice.disturbed_share
    if steps_share is None:
        if evidence.measure == "cpu":
            return [f"judged on CPU time: {100 * evidence.disturbed_share:.0f} % of the blocks were disturbed"]
        return []
    disturbed = f"{100 * steps_share:.0f} % of the steps were disturbed"
    if evidence.measure == "cpu":
        return [f"judged on CPU time: {disturbed}"]
    return [f"judged on the wall clock, though {disturbed}: {evidence.choice.why_wall}"]
