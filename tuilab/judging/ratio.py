"""Judge claims about the ratio of two arms.

A verdict depends on the *size* of the effect: the confidence interval of the ratio is compared
with the claimed bound. All numbers are natural logarithms of ratios until they are reported.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tuilab.judging import stats
from tuilab.judging.controls import (
    control_offset,
    describe_circumstances,
    describe_doubt,
    describe_failed_control,
    describe_missing_control,
    describe_shift,
)
from tuilab.judging.evidence import BOX, MIN_UNITS, Evidence, is_finite
from tuilab.judging.interim_analyses import ONLY_ANALYSIS, InterimAnalysis
from tuilab.judging.intervals import REPEATS, ROUNDS, Units, is_machine_disturbed, make_units
from tuilab.judging.is_judgeable import find_flaw
from tuilab.judging.judgement import Judgement
from tuilab.judging.significance import (
    RatioTest,
    describe_too_few,
    estimate_more_repeats,
    make_ratio_test,
    preemption_cost,
)
from tuilab.record import events
from tuilab.record.verdicts import DECISIONS, Verdict
from tuilab.text.display import percent

_MAX_LOG = 700  # the exponential of a larger number is no float
# An inconclusive ratio is called far from its bound only if the whole interval is further away
# than a factor of 2 and than twice its own width. Chance hardly explains that.
_MIN_FAR_LOG = math.log(2)
_MIN_FAR_WIDTHS = 2
_SHIFT_P_VALUE = 0.2  # far higher than for a doubt: here a possible shift is enough to stay silent


def judge_ratios(
    claims: Sequence[tuple[events.ClaimDeclared, Evidence]],
    analysis: InterimAnalysis = ONLY_ANALYSIS,
) -> list[Judgement]:
    """Judge all claims of a run about ratios together, by Holm's procedure. None has a flaw.

    The surest claim comes first and is judged as one of all claims. Each decided claim leaves one
    claim fewer for the next one to share the error with. A decided claim may still be wrong in
    another way: "surely not twice as long" leaves open whether the ratio lies within the margin.
    So a claim only leaves one fewer if its interval contains neither its bound nor its margin
    (Shaffer's refinement).
    """
    tests = [_make_test(claim, evidence) for claim, evidence in claims]
    surest_first = sorted(range(len(claims)), key=lambda index: _p_value(tests[index]))
    remaining = len(claims)
    judgements: dict[int, Judgement] = {}
    for index in surest_first:
        claim, evidence = claims[index]
        test = tests[index]
        judgement = _judge(claim, evidence, test, analysis, remaining)
        judgements[index] = judgement
        is_decided = test is not None and judgement.verdict in DECISIONS
        if test is not None and is_decided and test.at_analysis(analysis, remaining).is_clear():
            remaining -= 1
    return [judgements[index] for index in range(len(claims))]


def judge_ratio(
    claim: events.ClaimDeclared,
    evidence: Evidence,
    analysis: InterimAnalysis = ONLY_ANALYSIS,
    claims: int = 1,
) -> Judgement:
    """Judge a claim about a ratio at an interim analysis, as one of several claims.

    The first of these verdicts that applies:

    1. INVALID if a control failed: the arms compute different things, a time is not a number,
       recording took more than 1 % of a step, or the whole interval of the A/A control lies
       further from 1 than the margin.
    2. INCONCLUSIVE if the measurement cannot carry a verdict: the machine lacked something, more
       than a third of the repeats failed, there are fewer than six units, more than 30 % of the
       blocks were disturbed on the wall clock, one arm was disturbed more than the other, or the
       ratio was still changing at the end of a race.
    3. The verdict of `_decide`.

    The judgement has an estimate and an interval whatever the verdict is. Raises ValueError for a
    claim that has a flaw.
    """
    if flaw := find_flaw(claim):
        raise ValueError(flaw)
    return _judge(claim, evidence, _make_test(claim, evidence), analysis, claims)


def _make_test(claim: events.ClaimDeclared, evidence: Evidence) -> RatioTest | None:
    """Return the test of a claim; None if a measured ratio is not a number."""
    return make_ratio_test(claim, evidence) if is_finite(evidence) else None


def _judge(
    claim: events.ClaimDeclared,
    evidence: Evidence,
    claimed_test: RatioTest | None,
    analysis: InterimAnalysis,
    claims: int,
) -> Judgement:
    """Return the judgement of a claim, from its test before any analysis (None: not a number).

    `claims` is the number of claims that share the error of the analysis.
    """
    if claimed_test is None:
        no_number = "a time is not a number: a block took no time, or for ever"
        return Judgement(Verdict.INVALID, evidence.difference or no_number)
    test = claimed_test.at_analysis(analysis, claims)
    if not test.units.values:
        return Judgement(Verdict.INCONCLUSIVE, "no round was measured")
    verdict, reason = reach_verdict(claim, evidence, test)
    judgement = replace(_measure(claim, evidence, test), verdict=verdict)
    if verdict == Verdict.INCONCLUSIVE:
        more_repeats = estimate_more_repeats(test, reason)
        judgement = replace(judgement, more_repeats=more_repeats)
    explanation = _explain(claim, evidence, test, judgement, reason, analysis)
    return replace(judgement, why="; ".join(explanation))


# ---- the verdict


def reach_verdict(
    claim: events.ClaimDeclared, evidence: Evidence, test: RatioTest
) -> tuple[Verdict, str]:
    """Return the verdict and its reason. The reason is empty if the numbers alone decide."""
    if reason := describe_failed_control(claim, evidence):
        return Verdict.INVALID, reason
    if reason := describe_doubt(claim, evidence) or describe_too_few(test):
        return Verdict.INCONCLUSIVE, reason
    verdict, reason = _decide(test)
    if verdict == Verdict.SUPPORTED and evidence.learning_doubt:
        return Verdict.INCONCLUSIVE, evidence.learning_doubt
    return verdict, reason


def _decide(test: RatioTest) -> tuple[Verdict, str]:
    """Compare the interval with the bound and the margin. The first verdict that applies:

    1. INCONCLUSIVE if the Hodges-Lehmann estimate, which outliers move little, lies outside the
       interval.
    2. SUPPORTED if the interval lies on the claimed side of the bound. A claim of "not much worse"
       (at least 0.9, at most 1.1) says that nothing large was detected. Unless the ratio is even
       better than 1, the injected delay must then have been detected.
    3. NO MEANINGFUL DIFFERENCE if a difference is claimed (a bound of 1 or beyond) and the
       interval lies within the margin. INCONCLUSIVE if the injected delay was not detected. This
       comes before REFUTED because it says more.
    4. WEAKER THAN CLAIMED if a difference is claimed, and the interval lies between the margin and
       the bound.
    5. REFUTED if the interval lies on the other side of the bound.
    6. INCONCLUSIVE in all other cases.

    All of them use one interval, so that the error of a claim is spent once and not once for each
    way to be wrong about the ratio.
    """
    bound = test.bound
    margin = test.margin
    _, low, high = test.interval()
    robust_center = stats.hodges_lehmann(test.units.values)
    if not low <= robust_center <= high:
        return Verdict.INCONCLUSIVE, "the mean and the Hodges-Lehmann estimate disagree"

    if low >= bound:
        is_not_much_worse = bound < 0 and low <= 0
        if is_not_much_worse and test.distrust:
            return Verdict.INCONCLUSIVE, test.distrust
        return Verdict.SUPPORTED, ""

    is_within_margin = abs(robust_center) <= margin and -margin <= low and high <= margin
    if bound >= 0 and is_within_margin:
        if test.distrust:
            return Verdict.INCONCLUSIVE, test.distrust
        return Verdict.NO_DIFFERENCE, ""

    if high < bound:
        if bound > 0 and low > margin:
            return Verdict.WEAKER, ""
        return Verdict.REFUTED, ""
    return Verdict.INCONCLUSIVE, ""


def _p_value(test: RatioTest | None) -> float:
    """Return the p value of the distance from the nearest edge: small if the claim is sure."""
    if test is None or len(test.units.values) < MIN_UNITS:
        return 1.0
    return stats.p_value(test.clearance(), test.error(), test.freedom())


# ---- the numbers of a judgement


def _measure(claim: events.ClaimDeclared, evidence: Evidence, test: RatioTest) -> Judgement:
    """Return a judgement that has its numbers, but neither its verdict nor its explanation."""
    center, low, high = test.interval()
    if claim.op == "at_most":  # the test is about the inverse ratio
        center, low, high = -center, -high, -low
    units = make_units(evidence, evidence.rounds)
    count = len(units.values)
    smallest_effect = None
    if count >= MIN_UNITS:
        by_chance = stats.smallest_effect(test.freedom() + 1, test.error(), test.confidence)
        smallest_effect = by_chance + test.offset
    same = make_units(evidence, evidence.same)
    return Judgement(
        verdict=Verdict.INCONCLUSIVE,
        estimate=_round_number(center, math.exp),
        low=_round_number(low, math.exp),
        high=_round_number(high, math.exp),
        noise_floor=_noise_floor(same, claim.confidence),
        smallest_effect=_round_number(smallest_effect, math.expm1),
        units=count,
        unit=units.name,
        confidence=_round_number(test.confidence),
        measure=evidence.clock,
    )


def _noise_floor(same: Units, confidence: float) -> float | None:
    """Return how far the interval of the A/A control reaches from 1; None without a control.

    The assumed variation between processes is left out: the noise floor is what was measured.
    """
    if not same.values:
        return None
    _, low, high = replace(same, shared_sd=0.0).interval(confidence)
    return _round_number(max(abs(low), abs(high)), math.expm1)


def _round_number(value: float | None, function: Callable[[float], float] = float) -> float | None:
    """Return the function of a log in nine digits, on which all versions of scipy agree.

    None if there is no value, or if it is no log of a possible ratio.
    """
    if value is None or not abs(value) < _MAX_LOG:
        return None
    return float(f"{function(value):.9g}")


# ---- the explanation


def _explain(
    claim: events.ClaimDeclared,
    evidence: Evidence,
    test: RatioTest,
    judgement: Judgement,
    reason: str,
    analysis: InterimAnalysis,
) -> list[str]:
    """Return why this verdict was reached: its reason first, then what the numbers rest on."""
    parts = []
    if reason:
        parts.append(reason)
    if direction := _describe_direction(claim, evidence, judgement):
        parts.append(direction)
    if judgement.units >= MIN_UNITS:
        parts.append(test.units.describe())
    parts += describe_circumstances(evidence)
    if analysis.early_stop:
        parts.append(analysis.early_stop)
    if judgement.verdict == Verdict.INVALID:
        return parts
    missing_control = describe_missing_control(evidence)
    if missing_control and not reason.startswith(missing_control):
        parts.append(missing_control)
    parts += _describe_widening(evidence, test)
    if judgement.low is not None and judgement.confidence != claim.confidence:
        parts.append(f"interval of {judgement.level}")
    if judgement.verdict == Verdict.INCONCLUSIVE:
        parts += _describe_sensitivity(judgement)
    return parts


def _describe_direction(
    claim: events.ClaimDeclared, evidence: Evidence, judgement: Judgement
) -> str:
    """Return on which side of its bound an inconclusive ratio probably is, or an empty string.

    Several processes have to agree, as many as an interval needs, because a few may agree by
    chance; the rounds of one process do not count. And nothing may have shifted the ratio in all
    of them: a disturbance of one arm alone, or a change in the course of a race.
    """
    if judgement.verdict != Verdict.INCONCLUSIVE:
        return ""
    if judgement.unit != REPEATS or judgement.units < MIN_UNITS:
        return ""
    if not judgement.low or not judgement.high:
        return ""
    if describe_shift(claim, evidence, _SHIFT_P_VALUE):
        return ""
    width = math.log(judgement.high / judgement.low)
    above_bound = math.log(judgement.low / claim.bound)
    below_bound = math.log(claim.bound / judgement.high)
    if max(above_bound, below_bound) < max(_MIN_FAR_LOG, _MIN_FAR_WIDTHS * width):
        return ""
    side = "above" if judgement.low > claim.bound else "below"
    return f"by all signs far {side} {claim.bound:g}, though not to be sized"


def _describe_widening(evidence: Evidence, test: RatioTest) -> list[str]:
    """Return by how much the interval is wider than the measured values alone make it, and why."""
    parts = []
    if test.units.name == ROUNDS:
        parts.append(_describe_single_process(evidence, test))
    if offset := control_offset(evidence):
        parts.append(f"interval wider by {percent(math.expm1(offset))}, as the A/A control was off")
    if cost := preemption_cost(evidence):
        wider = f"interval wider by {percent(math.expm1(cost))}, an assumed cost of interruptions"
        parts.append(f"{wider}: too few blocks were undisturbed to measure it")
    return parts


def _describe_single_process(evidence: Evidence, test: RatioTest) -> str:
    """Return which variation between processes was assumed, as one process cannot show it."""
    assumed = f"interval wider by an assumed {percent(test.units.shared_sd)} variation"
    if is_machine_disturbed(evidence):
        return f"{assumed} of a process on a disturbed machine; repeats would measure it"
    if evidence.process_sd is None:
        device = "machine" if evidence.calibrated_device == BOX else evidence.calibrated_device
        return f"{assumed} between processes, as this {device} was never calibrated"
    return f"{assumed} between processes, by the calibration"


def _describe_sensitivity(judgement: Judgement) -> list[str]:
    """Return what an inconclusive run could have detected, and how many more repeats it needs."""
    effect = "n/a"
    if judgement.smallest_effect is not None:
        effect = f"about {percent(judgement.smallest_effect)}"
    if judgement.unit == ROUNDS:
        needed = "n/a from one process"
    elif judgement.more_repeats is None:
        needed = "n/a"
    else:
        quantity = "at least" if judgement.units < MIN_UNITS else "about"
        total = judgement.units + judgement.more_repeats
        needed = f"{quantity} {total} ({judgement.more_repeats} more)"
    return [f"smallest effect it could have seen: {effect}", f"repeats needed: {needed}"]
