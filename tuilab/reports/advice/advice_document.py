"""The advice as one JSON document, for programs."""

import msgspec

from tuilab.record.summary_parts import RacedSetting
from tuilab.reports.advice.advised import Advice, Advised
from tuilab.reports.advice.env_file import command_to_race
from tuilab.reports.advice.winner import ChosenValue
from tuilab.reports.result import DocumentPart
from tuilab.runs import command_line


class OtherValue(DocumentPart, frozen=True):
    value: str
    ratio: float | None
    low: float | None
    high: float | None


class ComparedVariable(DocumentPart, frozen=True):
    """A variable whose values were compared in a run, and what came of it."""

    name: str
    ranks: int | None
    """number of ranks; null: one program"""
    value: str | None
    """value that won; null: the default won, or nothing is decided"""
    default: str
    is_decided: bool
    why: str
    """why nothing is decided, if so"""
    about: str
    """work that was timed"""
    against: str | None
    """what speaks against setting the variable"""
    others: list[OtherValue]
    """other values, each with its time or cost as a multiple of that of the winner; of the default, if none won"""
    costs: dict[str, float]
    """what was counted for each value; empty if the values were timed"""
    unit: str | None


class AdvisedVariable(ComparedVariable, frozen=True):
    run: str
    started_wall_ns: int | None
    command: list[str] | None


class UncountedRun(DocumentPart, frozen=True):
    name: str
    run: str
    why: str


class UncomparedVariable(DocumentPart, frozen=True):
    name: str
    command: list[str]


class AdviceDocument(DocumentPart, tag_field="schema", tag="tuilab.advice/1", frozen=True):
    """What `tuilab advise --json` prints."""

    ranks: int | None
    box: dict[str, str]
    settings: list[AdvisedVariable]
    left: list[AdvisedVariable]
    """variables to leave unchanged: the default won, or nothing is decided"""
    conflicts: list[AdvisedVariable]
    not_counted: list[UncountedRun]
    not_known: list[UncomparedVariable]
    """variables that were never compared here, and the command that compares them"""


def advice_document(advice: Advice) -> AdviceDocument:
    """Return what follows, what does not, and what is not known."""
    return AdviceDocument(
        ranks=advice.ranks or None,
        box=advice.facts,
        settings=[_advised(advised) for advised in advice.settings],
        left=[_advised(advised) for advised in advice.stays],
        conflicts=[_advised(advised) for advised in advice.conflicts],
        not_counted=[
            UncountedRun(unused.name, unused.subject.run_dir.name, unused.why)
            for unused in advice.unused
        ],
        not_known=[
            UncomparedVariable(name, command_to_race(name, lesson, advice.ranks))
            for name, lesson in advice.unknown
        ],
    )


def variable(raced: RacedSetting, choice: ChosenValue) -> ComparedVariable:
    """Return a variable whose values were compared in a run, and what came of it."""
    said = raced.records[0]
    return ComparedVariable(
        name=said.name,
        ranks=said.ranks or None,
        value=choice.value or None,
        default=said.default,
        is_decided=choice.is_decided,
        why=choice.why,
        about=said.about,
        against=raced.against or None,
        others=[
            OtherValue(value, judged.estimate, judged.low, judged.high)
            for value, judged in choice.against.items()
        ],
        costs={
            candidate.value: candidate.cost
            for candidate in said.candidates
            if candidate.cost is not None
        },
        unit=said.unit or None,
    )


def _advised(advised: Advised) -> AdvisedVariable:
    summary = advised.subject.summary
    run = summary.run
    return AdvisedVariable(
        **msgspec.structs.asdict(variable(advised.raced, advised.choice)),
        run=advised.subject.run_dir.name,
        started_wall_ns=run.wall_ns if run else None,
        command=command_line.rerun_words(run, summary.planned_repeats) if run else None,
    )
