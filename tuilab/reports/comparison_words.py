"""Runs side by side as every view shows them: their numbers, what each found for a claim, and the curves they share."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

from tuilab.record.events import AxesNamed
from tuilab.record.series import Series, first_of_each_arm
from tuilab.record.states import RUNNING_STATES
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import NOT_DECIDED, NOT_JUDGED
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.step_times import about_one_process, rows_of_commands
from tuilab.runs.comparing import comparison
from tuilab.runs.comparing.claim_pairs import ClaimPair, Shift, Side
from tuilab.runs.comparing.comparison import Comparison, key_words, time_rows, verdict_words
from tuilab.runs.comparing.differences import Difference
from tuilab.text.display import brief, plural, shorten, show
from tuilab.text.words import formatter_of, seconds

_PARTS = ("parameter", "source", "run", "environment", "conditions")

Values = Sequence[float | None]


class NumberTable(NamedTuple):
    """Numbers of one kind: a row has a name and a cell for each run, with its ratio to the first run."""

    title: str
    rows: list[list[str]]
    note: str = ""


def going_on(subjects: Sequence[ReportedRun]) -> set[int]:
    """Return the places of the runs that are still running."""
    return {at for at, subject in enumerate(subjects) if subject.state in RUNNING_STATES}


def source_changes(subjects: Sequence[ReportedRun]) -> list[str]:
    """Return how the source of the last run differs from that of the first, if both are of one scenario and kept it."""
    names = {subject.summary.run.scenario if subject.summary.run else "" for subject in subjects}
    first, last = subjects[0].source, subjects[-1].source
    return comparison.source_changes(first, last) if len(names) == 1 and first and last else []


def in_order(differences: Sequence[Difference]) -> list[Difference]:
    """Return the differences: parameters first, how busy the machine was last."""
    return sorted(
        differences, key=lambda row: _PARTS.index(row.part) if row.part in _PARTS else len(_PARTS)
    )


def shared_names(subjects: Sequence[ReportedRun], found: Comparison) -> list[str]:
    """Return the names of the curves that more than one run has."""
    names_of_runs = [{name for name, _, _ in subject.summary.series} for subject in subjects]
    return [name for name in found.series if sum(name in names for names in names_of_runs) > 1]


def overlaid(summaries: Sequence[RunSummary], name: str) -> list[Series]:
    """Return the curves of a name, the first repeat of each arm of each run, called by the number of the run and the arm."""
    by_arm: dict[str, list[Series]] = {}
    for number, summary in enumerate(summaries, 1):
        for line in first_of_each_arm(summary.series, name):
            by_arm.setdefault(line.arm, []).append(
                replace(line, arm=f"{number} {line.arm}".strip())
            )
    return [line for lines in by_arm.values() for line in lines]


def axes_of(summaries: Sequence[RunSummary], name: str) -> AxesNamed:
    """Return the axes of a metric as the newest run that names them has them: its name may be new, its meaning is not."""
    for summary in reversed(summaries):
        if name in summary.axes:
            return summary.axes[name]
    return AxesNamed(metric=name)


def side_found(side: Side) -> tuple[str, str]:
    """Return the verdict of one run, and what it measured."""
    verdict = show(side.verdict or (NOT_DECIDED if side.is_open else NOT_JUDGED), 40)
    return verdict, side.ratio_words or show(side.measured or side.why, 300)


def side_words(side: Side | None) -> str:
    """Return what one run found for a claim."""
    return "  ".join(filter(None, side_found(side))) if side else "not claimed"


def pair_words(pair: ClaimPair) -> list[str]:
    """Return how the runs differ on a claim, and by how much."""
    words = [verdict_words(pair), key_words(pair)]
    words += [shift_words(number, shift) for number, shift in enumerate(pair.shifts, 2) if shift]
    return [*filter(None, words)]


def shift_words(number: int, shift: Shift) -> str:
    """Return how the estimate of a later run differs from that of the first run."""
    return f"run {number} / run 1: {shift.words}{shift.lone_words}"


def number_tables(found: Comparison) -> list[NumberTable]:
    """Return the times of calls, and the measured values that differ."""
    lacks = found.lacks
    tables = []
    if found.times:
        rows = [
            _cells(row.label, row.values, seconds, lacks, row.shifts) for row in time_rows(found)
        ]
        tables.append(NumberTable(f"Median time of a {found.of}", rows))
    if found.sizes:
        rows = [
            _cells(name, values, formatter_of(name), lacks)
            for name, values in found.sizes
            if len(set(values)) > 1
        ]
        same = len(found.sizes) - len(rows)
        tables.append(
            NumberTable(
                "Measured with lab.memory",
                rows,
                f"{plural(same, 'value')} are the same" if same else "",
            )
        )
    return tables


def command_tables(subjects: Sequence[ReportedRun], found: Comparison) -> list[NumberTable]:
    """Return what watched commands took, and what can be said of the difference."""
    rows = [
        _cells(row.name, row.values, row.spell, found.lacks, row.shifts)
        for row in rows_of_commands(subjects)
    ]
    return (
        [NumberTable("Measured in one process each", rows, about_one_process(subjects))]
        if rows
        else []
    )


def _cells(
    name: str,
    values: Values,
    spell: Callable[[float], str],
    lacks: Sequence[str],
    shifts: Sequence[Shift | None] = (),
) -> list[str]:
    """Return a row: the name, the first run's value, and the others' with their ratio to it, and its interval if it has one."""
    first = values[0]
    row = [shorten(name, 60)]
    for value, lack, shift in zip_longest(values, lacks, [None, *shifts]):
        cell = lack if value is None else spell(value)
        if len(row) > 1 and value is not None and first:
            cell += f" x{brief(value / first)}"
        if shift:
            cell += f" [{brief(shift.low)}, {brief(shift.high)}]"
        row.append(cell)
    return row
