"""Choose the value of a setting that won in a run.

The run raced the values: it timed each of them as an arm, or counted its cost. Each pair of values
is compared by the rule of the judge, and a tie goes to the cheaper value. A
value is chosen if it is surely better than the default and than all values that take less of the
machine, and no value is surely better than it. Advice does harm only if a value falsely seems
better than the default. For all values of a setting together, the probability of that is at most
one in twenty.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from tuilab.judging.evidence import gather_evidence
from tuilab.judging.interim_analyses import latest_analysis
from tuilab.judging.judgement import Judgement
from tuilab.judging.ratio import judge_ratio
from tuilab.record.events import Candidate, ClaimDeclared, SettingRaced
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import RacedSetting
from tuilab.record.verdicts import DECISIONS, Verdict
from tuilab.text.display import plural, show

PAYS = 1.05  # a value is worse if it takes this many times as long; less is not worth a variable
_NOT_TIMED = Judgement(Verdict.INCONCLUSIVE, "its values were not timed")
# Lengths in characters.
_NAME_LENGTH = 40
_VALUE_LENGTH = 200
_REASON_LENGTH = 300

# By two values, whether the first takes longer than the second, and how many times.
_Judgements = dict[tuple[str, str], Judgement]


@dataclass(frozen=True)
class ChosenValue:
    """The value that won; empty if none did, because the default is best or nothing is decided."""

    value: str = ""
    is_decided: bool = True
    why: str = ""  # why nothing is decided
    # By each other value: how many times as long it takes as the winner or the default.
    against: dict[str, Judgement] = field(default_factory=dict)


def choose_value(summary: RunSummary, raced: RacedSetting) -> ChosenValue:
    """Return the value of a setting that won in a run.

    The choice is empty if the default won, and undecided with a reason if the timing was not valid
    or another value may be better.
    """
    flaw = _find_flaw(raced)
    if flaw:
        return ChosenValue(is_decided=False, why=flaw)
    declared = raced.records[0]
    judgements = {}
    for over in declared.candidates:
        for under in declared.candidates:
            if over != under:
                judgements[over.value, under.value] = _judge(summary, raced, over, under)
    values = [candidate.value for candidate in declared.candidates]
    winner = _find_winner(values, declared.default, judgements)
    best = winner or declared.default
    against = {}
    for value in values:
        if value != best:
            against[value] = judgements[value, best]
    if winner:
        return ChosenValue(winner, against=against)
    why = _explain_no_decision(values, declared.default, judgements)
    return ChosenValue(is_decided=not why, why=why, against=against)


def describe_setting(summary: RunSummary, raced: RacedSetting) -> tuple[str, str]:
    """Return a variable, and the result of comparing its values in one run."""
    declared = raced.records[0]
    choice = choose_value(summary, raced)
    name = declared.name
    if declared.ranks:
        name = f"{name}, {plural(declared.ranks, 'rank')}"
    default = show(declared.default, _VALUE_LENGTH)
    if choice.value:
        value = show(choice.value, _VALUE_LENGTH)
        result = f"{value} beat the default, {default}; to use it: tuilab advise"
    elif choice.is_decided:
        result = f"no value beat the default, {default}"
    else:
        result = f"not decided: {show(choice.why, _REASON_LENGTH)}"
    return show(name, _NAME_LENGTH), result


# ---- flaws


def _find_flaw(raced: RacedSetting) -> str:
    """Return why nothing can be chosen whatever was measured, or an empty string."""
    first = raced.records[0]
    values = [candidate.value for candidate in first.candidates]
    if raced.is_late:
        return "the candidate values were declared after the timing had started"
    if len({_encode_terms(declared) for declared in raced.records}) > 1:
        return "the repeats compared different values"
    has_repeated_values = len(set(values)) < len(values)
    if len(values) < 2 or has_repeated_values or first.default not in values:
        return "the candidates have to be different values that include the default"
    return ""


def _encode_terms(declared: SettingRaced) -> bytes:
    """Return what all repeats have to declare alike: everything except measurements."""
    candidates = []
    for candidate in declared.candidates:
        candidates.append((candidate.value, candidate.arm, candidate.cost is None))
    terms = [candidates, declared.default, declared.about, declared.cores, declared.unit]
    return msgspec.json.encode(terms)


# ---- the winner


def _find_winner(values: Sequence[str], default: str, judgements: _Judgements) -> str:
    """Return the first value that has won, or an empty string. `values` begin with the cheapest."""
    for value in values:
        if value != default and _has_won(value, values, default, judgements):
            return value
    return ""


def _has_won(value: str, values: Sequence[str], default: str, judgements: _Judgements) -> bool:
    """Return whether a value is surely better than the default and than all cheaper values.

    No other value may be surely better than it. `values` begin with the cheapest.
    """
    cheaper = values[: values.index(value)]
    for loser in (default, *cheaper):
        if not _is_worse(judgements[loser, value]):
            return False
    rivals = [rival for rival in values if rival != value]
    return not any(_is_worse(judgements[value, rival]) for rival in rivals)


def _is_worse(judgement: Judgement) -> bool:
    return judgement.verdict == Verdict.SUPPORTED


def _explain_no_decision(values: Sequence[str], default: str, judgements: _Judgements) -> str:
    """Return why the default may not be best, or an empty string if it is."""
    alternatives = [value for value in values if value != default]
    better = [value for value in alternatives if _is_worse(judgements[default, value])]
    if better:
        verb = "are"
        if len(better) == 1:
            verb = "is"
        names = " and ".join(better)
        return f"{names} {verb} better than the default, but the best value is not decided"
    for value in alternatives:
        judgement = judgements[default, value]
        if judgement.verdict not in DECISIONS:
            reason = judgement.why.partition(";")[0]
            return f"{value} against the default, {default}: {reason}"
    return ""


# ---- judgements


def _judge(
    summary: RunSummary, raced: RacedSetting, over: Candidate, under: Candidate
) -> Judgement:
    """Judge whether `over` takes at least `PAYS` times as much as `under`.

    A value without an arm was not timed but counted: then each repeat has to agree, and the verdict
    is SUPPORTED or REFUTED. Its estimate is None if `under` costs nothing.
    """
    if over.arm:
        return _judge_times(summary, raced.records[0], over, under)
    verdict = Verdict.SUPPORTED
    for declared in raced.records:
        cost = _find_cost(declared, over.value)
        other_cost = _find_cost(declared, under.value)
        if not (cost > other_cost and cost >= PAYS * other_cost):
            verdict = Verdict.REFUTED
    first = raced.records[0]
    estimate = None
    if _find_cost(first, under.value):
        estimate = _find_cost(first, over.value) / _find_cost(first, under.value)
    return Judgement(verdict, estimate=estimate)


def _find_cost(declared: SettingRaced, value: str) -> float:
    costs = {candidate.value: candidate.cost for candidate in declared.candidates}
    return costs[value] or 0.0


def _judge_times(
    summary: RunSummary, declared: SettingRaced, over: Candidate, under: Candidate
) -> Judgement:
    """Judge the times of two values by the rule of claims, INCONCLUSIVE if one was not timed.

    The values compared with the default are judged together, which widens the intervals.
    """
    claim = ClaimDeclared(
        text="", over=over.arm, under=under.arm, op="at_least", bound=PAYS, cores=declared.cores
    )
    analysis = latest_analysis(summary)
    evidence = gather_evidence(claim, summary, analysis.workers)
    if evidence is None:
        return _NOT_TIMED
    return judge_ratio(claim, evidence, analysis, claims=len(declared.candidates) - 1)
