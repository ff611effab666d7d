"""Runs side by side, and a claim through the runs of its scenario, as JSON documents."""

from collections.abc import Iterable, Sequence
from typing import Annotated, TypeVar

from msgspec import Meta, field

from tuilab.reports.comparison_words import shared_names, source_changes
from tuilab.reports.documents.document_part import DocumentPart
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import Key, StateWord, VerdictWord
from tuilab.reports.step_times import rows_of_commands
from tuilab.runs.comparing import comparison
from tuilab.runs.comparing.claim_history import ClaimHistory
from tuilab.runs.comparing.claim_pairs import ClaimPair, Shift, Side
from tuilab.runs.comparing.comparison import Comparison, difference_words
from tuilab.runs.comparing.differences import Difference

Value = TypeVar("Value")
Shifts = Annotated[
    list[Shift | None], Meta(description="change of each further run from the first run")
]
Values = Annotated[list[float | None], Meta(description="value in each run")]


class ComparedSide(DocumentPart, frozen=True):
    """What one run found for a claim."""

    verdict: VerdictWord | None
    estimate: float | None
    low: float | None
    high: float | None
    measured: str
    """exact claim: what was measured, as text"""
    why: str
    op: str
    """claim about a ratio: at_least, at_most or between"""
    is_open: bool
    """true: no verdict yet, and the run is running"""
    gpu: str = field(name="gpu_words")
    clock: str
    """claim about a ratio: the clock that judged, wall or cpu; else empty"""


class ComparedClaim(DocumentPart, frozen=True):
    key: Key
    former_keys: list[str]
    text: str
    differs: str
    """difference between the runs, as text; empty: none"""
    sides: list[ComparedSide | None]
    """what each run found; null: it does not have the claim"""
    shifts: Shifts


class ComparedRun(DocumentPart, frozen=True):
    run: str
    """id of the run"""
    path: str
    """absolute path"""
    state: StateWord
    elapsed_s: float
    scenario: str | None
    host: str | None


class ComparedLine(DocumentPart, frozen=True):
    run: str
    arm: str
    writer: str
    count: int
    last: float | None
    low: float | None
    high: float | None


class ComparedCurve(DocumentPart, frozen=True):
    name: str
    lines: list[ComparedLine]


class ComparedCommand(DocumentPart, frozen=True):
    name: str
    """time of a step in milliseconds, memory in bytes, or the last value of a curve"""
    values: Values
    shifts: list[Shift | None]
    """change of each further run from the first run; only for the time of a step"""


class ComparedRuns(DocumentPart, frozen=True):
    """Some runs, the first of which the others are compared with."""

    scenarios: list[str]
    runs: list[ComparedRun]
    differences: list[Difference]
    same: int
    """number of facts that are the same in all runs"""
    source_changes: list[str]
    claims: list[ComparedClaim]
    times_s: dict[str, Values]
    """time of a call of each arm, in each run"""
    time_shifts: dict[str, Shifts]
    cpu_times_s: dict[str, Values]
    """CPU time of a call of each arm, in each run; empty if no verdict was judged on CPU time"""
    cpu_time_shifts: dict[str, Shifts]
    judged_on_cpu: list[str]
    """arms that every run judged on CPU time"""
    memory: dict[str, Values]
    commands: list[ComparedCommand]
    curves: list[ComparedCurve]
    regressions: list[str]


class CompareDocument(DocumentPart, tag_field="schema", tag="tuilab.compare/1", frozen=True):
    """What `tuilab compare --json` prints."""

    exit_code: int
    """exit code of the command"""
    comparisons: list[ComparedRuns]
    not_in_all: list[str]
    """scenarios that not all folders have"""
    found: list[str]
    """what --fail-on found, in sentences"""
    undecided: list[str]
    """what --fail-on could not decide, in sentences; not in the exit code"""


class HistoryMoment(DocumentPart, frozen=True):
    run: str
    """id of the run"""
    path: str
    """absolute path"""
    side: ComparedSide
    changes: list[Difference]
    """what changed since the previous run"""


class HistoryDocument(DocumentPart, tag_field="schema", tag="tuilab.claim-history/1", frozen=True):
    """What `tuilab runs --claim KEY --json` prints."""

    scenario: str
    key: Key
    text: str
    claimed: float | None
    """claim about a ratio: the claimed bound"""
    runs: list[HistoryMoment]


def compared_runs(subjects: Sequence[ReportedRun], compared: Comparison) -> ComparedRuns:
    """Return a comparison of some runs for a JSON document."""
    commands = []
    for row in rows_of_commands(subjects):
        commands.append(ComparedCommand(row.name, list(row.values), list(row.shifts)))
    curves = []
    for name in shared_names(subjects, compared):
        curves.append(ComparedCurve(name, _lines(subjects, name)))
    return ComparedRuns(
        scenarios=list(compared.names),
        runs=[_run(subject) for subject in subjects],
        differences=list(compared.differences),
        same=compared.same,
        source_changes=source_changes(subjects),
        claims=[_claim(pair) for pair in compared.claims],
        times_s=_lists(compared.times),
        time_shifts=_lists(compared.shifts.items()),
        cpu_times_s=_lists(compared.cpu_times),
        cpu_time_shifts=_lists(compared.cpu_shifts.items()),
        judged_on_cpu=sorted(compared.judged_on_cpu),
        memory=_lists(compared.sizes),
        commands=commands,
        curves=curves,
        regressions=comparison.regressions(compared),
    )


def history_document(history: ClaimHistory) -> HistoryDocument:
    """Return the history of a claim as a JSON document."""
    moments = []
    for entry in history.moments:
        moments.append(
            HistoryMoment(
                run=entry.run_dir.name,
                path=str(entry.run_dir),
                side=_side(entry.side),
                changes=list(entry.changes),
            )
        )
    return HistoryDocument(
        scenario=history.scenario,
        key=history.key or None,
        text=history.text,
        claimed=history.bound,
        runs=moments,
    )


def _lists(rows: Iterable[tuple[str, Iterable[Value]]]) -> dict[str, list[Value]]:
    return {name: list(values) for name, values in rows}


def _run(subject: ReportedRun) -> ComparedRun:
    """Return the facts about one of the runs; no scenario and host if its first record is lost."""
    scenario = None
    host = None
    run = subject.summary.run
    if run:
        scenario = run.scenario
        host = run.supervisor.host
    return ComparedRun(
        run=subject.run_dir.name,
        path=str(subject.run_dir),
        state=subject.state,
        elapsed_s=subject.summary.elapsed_s,
        scenario=scenario,
        host=host,
    )


def _claim(pair: ClaimPair) -> ComparedClaim:
    """Return a claim with a side for each run; None for a run that does not have the claim."""
    sides: list[ComparedSide | None] = []
    for side in pair.sides:
        sides.append(_side(side) if side else None)
    return ComparedClaim(
        key=pair.key or None,
        former_keys=list(pair.former_keys),
        text=pair.text,
        differs=difference_words(pair),
        sides=sides,
        shifts=list(pair.shifts),
    )


def _side(side: Side) -> ComparedSide:
    fields = {name: getattr(side, name) for name in ComparedSide.__struct_fields__}
    fields["verdict"] = side.verdict or None
    return ComparedSide(**fields)


def _lines(subjects: Sequence[ReportedRun], name: str) -> list[ComparedLine]:
    """Return the curves of a name in all runs."""
    lines = []
    for subject in subjects:
        for series in subject.summary.series.values():
            if series.name == name:
                line = ComparedLine(
                    run=subject.run_dir.name,
                    arm=series.arm,
                    writer=series.writer,
                    count=series.count,
                    last=series.last,
                    low=series.low,
                    high=series.high,
                )
                lines.append(line)
    return lines
