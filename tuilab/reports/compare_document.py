"""Runs side by side, and a claim through the runs of its scenario, as JSON documents."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, field

from tuilab.reports.comparison_words import shared_names, source_changes
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import DocumentPart, Key, StateWord, VerdictWord
from tuilab.reports.step_times import rows_of_commands
from tuilab.runs.comparing import comparison
from tuilab.runs.comparing.claim_history import ClaimHistory
from tuilab.runs.comparing.claim_pairs import ClaimPair, Shift, Side
from tuilab.runs.comparing.comparison import Comparison, verdict_words
from tuilab.runs.comparing.differences import Difference

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


def compared_runs(subjects: Sequence[ReportedRun], found: Comparison) -> ComparedRuns:
    """Return a comparison of some runs for a JSON document."""
    rows = rows_of_commands(subjects)
    return ComparedRuns(
        scenarios=list(found.names),
        runs=[_run(subject) for subject in subjects],
        differences=list(found.differences),
        same=found.same,
        source_changes=source_changes(subjects),
        claims=[_claim(pair) for pair in found.claims],
        times_s=_lists(found.times),
        time_shifts={arm: list(shifts) for arm, shifts in found.shifts.items()},
        cpu_times_s=_lists(found.cpu_times),
        cpu_time_shifts={arm: list(shifts) for arm, shifts in found.cpu_shifts.items()},
        judged_on_cpu=sorted(found.judged_on_cpu),
        memory=_lists(found.sizes),
        commands=[ComparedCommand(row.name, list(row.values), list(row.shifts)) for row in rows],
        curves=[
            ComparedCurve(name, _lines(subjects, name)) for name in shared_names(subjects, found)
        ],
        regressions=comparison.regressions(found),
    )


def history_document(history: ClaimHistory) -> HistoryDocument:
    """Return the history of a claim as a JSON document."""
    moments = []
    for moment in history.moments:
        run_dir = moment.run_dir
        moments.append(
            HistoryMoment(run_dir.name, str(run_dir), _side(moment.side), list(moment.changes))
        )
    return HistoryDocument(
        history.scenario, history.key or None, history.text, history.bound, moments
    )


def _lists(table: Sequence[tuple[str, tuple[float | None, ...]]]) -> dict[str, list[float | None]]:
    return {name: list(values) for name, values in table}


def _run(subject: ReportedRun) -> ComparedRun:
    run = subject.summary.run
    scenario, host = (run.scenario, run.supervisor.host) if run else (None, None)
    return ComparedRun(
        subject.run_dir.name,
        str(subject.run_dir),
        subject.state,
        subject.summary.elapsed_s,
        scenario,
        host,
    )


def _claim(pair: ClaimPair) -> ComparedClaim:
    sides = [_side(side) if side else None for side in pair.sides]
    return ComparedClaim(
        pair.key or None,
        list(pair.former_keys),
        pair.text,
        verdict_words(pair),
        sides,
        list(pair.shifts),
    )


def _side(side: Side) -> ComparedSide:
    fields = {name: getattr(side, name) for name in ComparedSide.__struct_fields__}
    return ComparedSide(**{**fields, "verdict": side.verdict or None})


def _lines(subjects: Sequence[ReportedRun], name: str) -> list[ComparedLine]:
    """Return the curves of a name in all runs."""
    lines = []
    for subject in subjects:
        for line in subject.summary.series.values():
            if line.name == name:
                values = line.count, line.last, line.low, line.high
                lines.append(ComparedLine(subject.run_dir.name, line.arm, line.writer, *values))
    return lines
