"""The advice as one JSON document, for programs."""

import msgspec

from tuilab.record.summary_parts import RacedSetting
from tuilab.reports.advice.advised import Advice, AdvisedSetting
from tuilab.reports.advice.env_file import command_to_compare
from tuilab.reports.advice.winner import ChosenValue
from tuilab.reports.documents.document_part import DocumentPart
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
    """other values, each with its time or cost as a multiple of that of the winner; of the default,
    if none won"""
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
    """Return the JSON document of an advice."""
    not_counted = []
    for run in advice.unused:
        not_counted.append(UncountedRun(run.name, run.subject.run_dir.name, run.why))
    not_known = []
    for name, scenario in advice.unknown:
        command = command_to_compare(name, scenario, advice.ranks)
        not_known.append(UncomparedVariable(name, command))
    return AdviceDocument(
        ranks=advice.ranks or None,
        box=advice.facts,
        settings=[_advised_variable(setting) for setting in advice.settings],
        left=[_advised_variable(setting) for setting in advice.unchanged],
        conflicts=[_advised_variable(setting) for setting in advice.conflicts],
        not_counted=not_counted,
        not_known=not_known,
    )


def compared_variable(raced: RacedSetting, choice: ChosenValue) -> ComparedVariable:
    """Return a variable whose values were compared in a run, and the result."""
    declared = raced.records[0]
    others = []
    for value, judgement in choice.against.items():
        others.append(OtherValue(value, judgement.estimate, judgement.low, judgement.high))
    costs = {}
    for candidate in declared.candidates:
        if candidate.cost is not None:
            costs[candidate.value] = candidate.cost
    return ComparedVariable(
        name=declared.name,
        ranks=declared.ranks or None,
        value=choice.value or None,
        default=declared.default,
        is_decided=choice.is_decided,
        why=choice.why,
        about=declared.about,
        against=raced.against or None,
        others=others,
        costs=costs,
        unit=declared.unit or None,
    )


def _advised_variable(setting: AdvisedSetting) -> AdvisedVariable:
    """Return a variable with the run that compared its values, and the command that repeats it."""
    summary = setting.subject.summary
    started_wall_ns = None
    command = None
    if summary.run:
        started_wall_ns = summary.run.wall_ns
        command = command_line.rerun_words(summary.run, summary.planned_repeats)
    return AdvisedVariable(
        **msgspec.structs.asdict(compared_variable(setting.raced, setting.choice)),
        run=setting.subject.run_dir.name,
        started_wall_ns=started_wall_ns,
        command=command,
    )
