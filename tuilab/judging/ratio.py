"""Claims about the ratio of two arms: judged on the *size* of the effect, the interval of the ratio against the claimed bound.

Everything about a ratio is reckoned in logs, and only what is reported is a ratio.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tuilab.judging import stats
from tuilab.judging.controls import doubt, failed_control, lacking_control, moved, offset, told
from tuilab.judging.evidence import BOX, MIN_UNITS, Evidence, is_finite
from tuilab.judging.flaw import flaw
from tuilab.judging.judgement import Judgement
from tuilab.judging.looks import ALONE, Look
from tuilab.judging.question import Question, ask, more_repeats, preemption, too_few
from tuilab.judging.units import Units, is_disturbed, units_of
from tuilab.record import events
from tuilab.record.verdicts import DECISIONS, Verdict
from tuilab.text import percent

_LARGEST_LOG = 700  # beyond it a ratio is no float
_PLAIN = math.log(2)  # how far off a bound is plain, where the measurement cannot carry a verdict
_LIKELY = 0.2  # a chance, above which luck alone may have changed a ratio in the course of a race
_WIDTHS = 2  # of the interval, that it is off then: what is random has hardly any chance beside it


def judge_ratios(claims: Sequence[tuple[events.ClaimDeclared, Evidence]], look: Look = ALONE) -> list[Judgement]:
    """Judge the claims of one run about ratios together, by Holm's steps; none of them has a flaw.

    The surest claim comes first, at the level of one among all; each that is decided leaves one claim fewer for the next to be
    one among. One that surely is not twice as long may still be falsely said to be within the margin, or beyond it: it is
    decided, and leaves one fewer, where its interval is clear of the bound and of the margin (Shaffer).
    """
    found: dict[int, Judgement] = {}
    among = len(claims)
    questions = [_question(claim, evidence) for claim, evidence in claims]
    for i in sorted(range(len(claims)), key=lambda i: _p_value(questions[i])):
        asked = questions[i]
        found[i] = _judge(*claims[i], asked, look, among)
        among -= asked is not None and found[i].verdict in DECISIONS and asked.at(look, among).is_clear()
    return [found[i] for i in range(len(claims))]


def judge_ratio(claim: events.ClaimDeclared, evidence: Evidence, look: Look = ALONE, among: int = 1) -> Judgement:
    """Judge a claim about the ratio of two arms at one of several looks, as one among several claims; the first that holds:

    1. INVALID: a control failed: the arms compute different things, a time is not a number, recording took more than 1 % of a
       step, or an arm against itself differs by more than the margin, with its whole interval.
    2. INCONCLUSIVE: the measurement cannot carry a verdict: the box lacked something, more than a third of the repeats failed,
       there are fewer than six units, more than 30 % of the blocks were disturbed on the wall clock, or more of one arm than of
       the other, the ratio was still changing at the end of a race.
    3. What `_decide` says.

    Raises ValueError for a claim that has a flaw. Estimate and interval are given whatever the verdict.
    """
    if problem := flaw(claim):
        raise ValueError(problem)
    return _judge(claim, evidence, _question(claim, evidence), look, among)


def _question(claim: events.ClaimDeclared, evidence: Evidence) -> Question | None:
    """Return what is asked about numbers; None where they are not all numbers."""
    return ask(claim, evidence) if is_finite(evidence) else None


def _judge(claim: events.ClaimDeclared, evidence: Evidence, asked: Question | None, look: Look, among: int) -> Judgement:
    if asked is None:
        return Judgement(Verdict.INVALID, evidence.difference or "a time is not a number: a block took no time, or for ever")
    question = asked.at(look, among)
    if not question.units.values:
        return Judgement(Verdict.INCONCLUSIVE, "no round was measured")
    verdict, reason = reached(claim, evidence, question)
    found = replace(_measure(claim, evidence, question), verdict=verdict)
    if verdict == Verdict.INCONCLUSIVE:
        found = replace(found, more_repeats=more_repeats(question, reason))
    return replace(found, why="; ".join(_why(claim, evidence, question, found, reason, look)))


def reached(claim: events.ClaimDeclared, evidence: Evidence, question: Question) -> tuple[Verdict, str]:
    """Return the verdict on what was measured, and why where it is not the numbers alone."""
    if reason := failed_control(claim, evidence):
        return Verdict.INVALID, reason
    if reason := doubt(claim, evidence) or too_few(question):
        return Verdict.INCONCLUSIVE, reason
    return _decide(question)


def _decide(question: Question) -> tuple[Verdict, str]:
    """Lay the interval against the bound. The first that holds, and why where it is not the numbers alone:

    1. INCONCLUSIVE: the Hodges-Lehmann estimate, which outliers move little, lies outside the interval.
    2. SUPPORTED: the interval lies on the claimed side of the bound. Where the claim is "not much worse" (at least 0.9, at
       most 1.1) and the ratio is not better than 1 either, the known delay must have been seen: the claim is then that
       nothing much was seen.
    3. NO MEANINGFUL DIFFERENCE, for a claim of a difference (a bound of 1 or beyond): the interval lies inside the margin. It
       comes before REFUTED because it says more. INCONCLUSIVE if the known delay was not seen.
    4. WEAKER THAN CLAIMED, for a claim of a difference: the interval lies beyond the margin and short of the bound.
    5. REFUTED: the interval lies wholly on the other side of the bound.
    6. INCONCLUSIVE.

    One interval for all of them: two ways to be wrong about one ratio then share what one of them alone may be.
    """
    bound, margin = question.bound, question.margin
    _, low, high = question.interval()
    middle = stats.hodges_lehmann(question.units.values)
    if not low <= middle <= high:
        return Verdict.INCONCLUSIVE, "the mean and the Hodges-Lehmann estimate disagree"
    if low >= bound:
        needs_trust = bound < 0 and low <= 0
        return (Verdict.INCONCLUSIVE, question.trust) if needs_trust and question.trust else (Verdict.SUPPORTED, "")
    if bound >= 0 and abs(middle) <= margin and -margin <= low and high <= margin:
        return (Verdict.INCONCLUSIVE, question.trust) if question.trust else (Verdict.NO_DIFFERENCE, "")
    if high < bound:
        return Verdict.WEAKER if bound > 0 and low > margin else Verdict.REFUTED, ""
    return Verdict.INCONCLUSIVE, ""


def _p_value(question: Question | None) -> float:
    """Return how sure it is on which side of each edge a ratio lies, to put claims in order."""
    if question is None or len(question.units.values) < MIN_UNITS:
        return 1.0
    return stats.p_value(question.clearance(), question.error(), question.freedom())


def _measure(claim: events.ClaimDeclared, evidence: Evidence, question: Question) -> Judgement:
    """Return the numbers of a judgement, its verdict still open."""
    units, same = units_of(evidence, evidence.rounds), units_of(evidence, evidence.same)
    center, low, high = question.interval()
    if claim.op == "at_most":
        center, low, high = -center, -high, -low
    count, effect = len(units.values), None
    if count >= MIN_UNITS:
        by_chance = stats.smallest_effect(question.freedom() + 1, question.error(), question.confidence)
        effect = by_chance + question.offset
    return Judgement(
        verdict=Verdict.INCONCLUSIVE,
        estimate=_rounded(center, math.exp),
        low=_rounded(low, math.exp),
        high=_rounded(high, math.exp),
        noise_floor=_noise_floor(same, claim.confidence),
        smallest_effect=_rounded(effect, math.expm1),
        units=count,
        unit=units.name,
        confidence=_rounded(question.confidence),
        measure=evidence.measure,
    )


def _noise_floor(same: Units, confidence: float) -> float | None:
    """Return how far the measured interval of the A/A control reaches from 1; None without one.

    What is assumed of a single process is no part of it.
    """
    if not same.values:
        return None
    _, low, high = replace(same, shared_sd=0.0).interval(confidence)
    return _rounded(max(abs(low), abs(high)), math.expm1)


def _rounded(value: float | None, function: Callable[[float], float] = float) -> float | None:
    """Return a number with nine digits, on which every version of scipy agrees; None for what no ratio can be."""
    return float(f"{function(value):.9g}") if value is not None and abs(value) < _LARGEST_LOG else None


def _why(
    claim: events.ClaimDeclared, evidence: Evidence, question: Question, found: Judgement, reason: str, look: Look
) -> list[str]:
    """Return why a verdict was reached, in parts: what speaks against another one, and its basis."""
    parts = [part for part in (reason, _signs(claim, evidence, found)) if part]
    if found.units >= MIN_UNITS:
        parts.append(question.units.in_words())
    parts += told(evidence)
    if look.words:
        parts.append(look.words)
    if found.verdict == Verdict.INVALID:
        return parts
    missing = lacking_control(evidence)
    if missing and not reason.startswith(missing):
        parts.append(missing)
    parts += _describe_widening(evidence, question)
    if found.low is not None and found.confidence != claim.confidence:
        parts.append(f"interval of {found.level}")
    if found.verdict == Verdict.INCONCLUSIVE:
        parts += _open(found)
    return parts


def _describe_widening(evidence: Evidence, question: Question) -> list[str]:
    """Return by how much the interval is wider than the measured values alone make it, and why."""
    parts = []
    if question.units.name == "rounds":
        parts.append(_describe_single_process(evidence, question))
    if control := offset(evidence):
        parts.append(f"interval wider by {percent(math.expm1(control))}, as the A/A control was off")
    if assumed := preemption(evidence):
        size = percent(math.expm1(assumed))
        few = "too few blocks were undisturbed to measure it"
        parts.append(f"interval wider by {size} for the cost of preemption: {few}")
    return parts


def _signs(claim: events.ClaimDeclared, evidence: Evidence, found: Judgement) -> str:
    """Return in words on which side of its bound a ratio is, of an inconclusive one; nothing where that is not plain.

    Processes that agree may have been lucky alike: it takes as many as an interval does, and rounds of one process are none.
    What moves one arm alone, or in the course of a race, moves all of them.
    """
    if found.verdict != Verdict.INCONCLUSIVE or found.unit != "repeats" or found.units < MIN_UNITS:
        return ""
    if not (found.low and found.high) or moved(claim, evidence, _LIKELY):
        return ""
    off = max(math.log(found.low / claim.bound), math.log(claim.bound / found.high))
    if off < max(_PLAIN, _WIDTHS * math.log(found.high / found.low)):
        return ""
    return f"by all signs far {'above' if found.low > claim.bound else 'below'} {claim.bound:g}, though not to be sized"


def _describe_single_process(evidence: Evidence, question: Question) -> str:
    """Return which variation between processes was assumed, as one process cannot show it."""
    assumed = f"interval wider by an assumed {percent(question.units.shared_sd)} variation"
    if is_disturbed(evidence):
        return f"{assumed} of a process on a disturbed machine; repeats would measure it"
    if evidence.process_sd is None:
        device = "machine" if evidence.calibrated_device == BOX else evidence.calibrated_device
        return f"{assumed} between processes, as this {device} was never calibrated"
    return f"{assumed} between processes, by the calibration"


def _open(found: Judgement) -> list[str]:
    """Return what an inconclusive measurement could have seen, and what it takes to decide: both reckoned from few values."""
    effect = "n/a" if found.smallest_effect is None else f"about {percent(found.smallest_effect)}"
    if found.unit == "rounds":
        needed = "n/a from one process"
    elif found.more_repeats is None:
        needed = "n/a"
    else:
        needed = f"{'at least' if found.units < MIN_UNITS else 'about'} {found.more_repeats}"
    return [f"smallest effect it could have seen: {effect}", f"repeats still needed: {needed}"]
