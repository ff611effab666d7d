"""Which value of a setting won: each is held against each other by the rule of the judge, and a tie goes to the cheaper one.

A value is chosen where it is surely better than the default and than all that take less of the box, and none is surely better
than it. Worse advice than none would have to be falsely better than the default: of one in all values, one in twenty at most.
"""

from collections.abc import Callable, Sequence
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

PAYS = 1.05  # how many times as long a value has to take to be worse: less is not worth a variable
_SELDOM_ASKED = Judgement(Verdict.INCONCLUSIVE, "its values were not timed")

Pair = tuple[str, str]  # of values: the first one is held against the second one
Judge = Callable[[Candidate, Candidate], Judgement]


@dataclass(frozen=True)
class ChosenValue:
    """The value that won, if one did; else whether the default stands, and why."""

    value: str = ""
    is_decided: bool = True
    why: str = ""
    against: dict[str, Judgement] = field(
        default_factory=dict
    )  # by value: how many times as long it takes as what stands


def choose(summary: RunSummary, raced: RacedSetting) -> ChosenValue:
    """Return which value won in a run."""
    if problem := _flaw(raced):
        return ChosenValue(is_decided=False, why=problem)
    said = raced.records[0]
    found = {
        (other.value, one.value): _judge(summary, raced, other, one)
        for one in said.candidates
        for other in said.candidates
        if other != one
    }
    values = [one.value for one in said.candidates]
    won = next(
        (
            value
            for value in values
            if value != said.default and _has_won(value, values, said.default, found)
        ),
        "",
    )
    stands = won or said.default
    against = {value: found[value, stands] for value in values if value != stands}
    if won:
        return ChosenValue(won, against=against)
    why = _why_open(values, said.default, found)
    return ChosenValue(is_decided=not why, why=why, against=against)


def describe_setting(summary: RunSummary, raced: RacedSetting) -> tuple[str, str]:
    """Return a variable, and what came of its values in one run."""
    said, choice = raced.records[0], choose(summary, raced)
    name = show(f"{said.name}, {plural(said.ranks, 'rank')}" if said.ranks else said.name, 40)
    if choice.value:
        return (
            name,
            f"{show(choice.value, 200)} beat the default, {show(said.default, 200)}; to use it: tuilab advise",
        )
    if not choice.is_decided:
        return name, f"not decided: {show(choice.why, 300)}"
    return name, f"no value beat the default, {show(said.default, 200)}"


def _flaw(raced: RacedSetting) -> str:
    """Return why nothing can be chosen whatever was measured, or nothing."""
    first = raced.records[0]
    values = [one.value for one in first.candidates]
    if raced.is_late:
        return "the candidate values were declared after the timing had started"
    if len({_terms(one) for one in raced.records}) > 1:
        return "the repeats compared different values"
    if len(set(values)) < 2 or len(set(values)) < len(values) or first.default not in values:
        return "the candidates have to be different values that include the default"
    return ""


def _terms(said: SettingRaced) -> bytes:
    """Return what every repeat says alike: all but what it saw."""
    candidates = [(one.value, one.arm, one.cost is None) for one in said.candidates]
    return msgspec.json.encode([candidates, said.default, said.about, said.cores, said.unit])


def _has_won(value: str, values: Sequence[str], default: str, found: dict[Pair, Judgement]) -> bool:
    better_than = {default, *values[: values.index(value)]} - {value}
    others = [other for other in values if other != value]
    return all(_is_worse(found[other, value]) for other in better_than) and not any(
        _is_worse(found[value, other]) for other in others
    )


def _is_worse(judged: Judgement) -> bool:
    return judged.verdict == Verdict.SUPPORTED


def _why_open(values: Sequence[str], default: str, found: dict[Pair, Judgement]) -> str:
    """Return why it is not decided that the default stands; nothing where it does."""
    others = [value for value in values if value != default]
    if better := [value for value in others if _is_worse(found[default, value])]:
        verb = "is" if len(better) == 1 else "are"
        return f"{' and '.join(better)} {verb} better than the default, but the best value is not decided"
    unsure = [
        (value, found[default, value])
        for value in others
        if found[default, value].verdict not in DECISIONS
    ]
    return next(
        (
            f"{value} against the default, {default}: {judged.why.partition(';')[0]}"
            for value, judged in unsure
        ),
        "",
    )


def _judge(
    summary: RunSummary, raced: RacedSetting, over: Candidate, under: Candidate
) -> Judgement:
    """Judge whether one value takes at least so many times as much as another one."""
    if over.arm:
        return _judge_times(summary, raced.records[0], over, under)
    pairs = [(_cost(said, over.value), _cost(said, under.value)) for said in raced.records]
    is_worse = all(over > under and over >= PAYS * under for over, under in pairs)
    ratio = pairs[0][0] / pairs[0][1] if pairs[0][1] else None
    return Judgement(Verdict.SUPPORTED if is_worse else Verdict.REFUTED, estimate=ratio)


def _cost(said: SettingRaced, value: str) -> float:
    return next(one.cost or 0.0 for one in said.candidates if one.value == value)


def _judge_times(
    summary: RunSummary, said: SettingRaced, over: Candidate, under: Candidate
) -> Judgement:
    claim = ClaimDeclared(
        text="", over=over.arm, under=under.arm, op="at_least", bound=PAYS, cores=said.cores
    )
    look = latest_analysis(summary)
    evidence = gather_evidence(claim, summary, look.workers)
    return (
        judge_ratio(claim, evidence, look, claims=len(said.candidates) - 1)
        if evidence
        else _SELDOM_ASKED
    )
