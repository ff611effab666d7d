"""Runs side by side as every view shows them: their claims, their numbers, and shared curves."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
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
from tuilab.runs.comparing.comparison import Comparison, difference_words, key_words, time_rows
from tuilab.runs.comparing.differences import Difference
from tuilab.text.display import brief, plural, shorten, show
from tuilab.text.words import formatter_of, seconds

_PARTS = ("parameter", "source", "run", "environment", "conditions")  # the order of differences

Values = Sequence[float | None]


class NumberTable(NamedTuple):
    """Numbers of one kind: a row has a name, and a cell for each run.

    A cell has the number, and from the second run on its ratio to the first run.
    """

    title: str
    rows: list[list[str]]
    note: str = ""


def running_positions(subjects: Sequence[ReportedRun]) -> set[int]:
    """Return the positions of the runs that are still running."""
    positions = set()
    for position, subject in enumerate(subjects):
        if subject.state in RUNNING_STATES:
            positions.add(position)
    return positions


def source_changes(subjects: Sequence[ReportedRun]) -> list[str]:
    """Return how the source of the last run differs from that of the first.

    The list is empty if the runs are of several scenarios, or if one of the two kept no source.
    """
    names = set()
    for subject in subjects:
        name = ""
        if subject.summary.run:
            name = subject.summary.run.scenario
        names.add(name)
    first = subjects[0].source
    last = subjects[-1].source
    if len(names) != 1 or not first or not last:
        return []
    return comparison.source_changes(first, last)


def order_differences(differences: Sequence[Difference]) -> list[Difference]:
    """Return the differences: parameters first, how busy the machine was last."""

    def position(difference: Difference) -> int:
        if difference.part not in _PARTS:
            return len(_PARTS)
        return _PARTS.index(difference.part)

    return sorted(differences, key=position)


def shared_names(subjects: Sequence[ReportedRun], compared: Comparison) -> list[str]:
    """Return the names of the curves that more than one run has."""
    counts: Counter[str] = Counter()
    for subject in subjects:
        counts.update({name for name, _, _ in subject.summary.series})
    return [name for name in compared.series if counts[name] > 1]


def overlay_curves(summaries: Sequence[RunSummary], name: str) -> list[Series]:
    """Return the curves of a name: of each arm of each run the first repeat, arm by arm.

    Each is labelled with the number of its run and the arm.
    """
    by_arm: dict[str, list[Series]] = {}
    for number, summary in enumerate(summaries, 1):
        for line in first_of_each_arm(summary.series, name):
            label = f"{number} {line.arm}".strip()
            by_arm.setdefault(line.arm, []).append(replace(line, arm=label))
    return list(chain.from_iterable(by_arm.values()))


def axes_of(summaries: Sequence[RunSummary], name: str) -> AxesNamed:
    """Return the names of the axes of a metric, as the last run that names them has them.

    If no run names them, both names are empty, and the values decide which axis is logarithmic.
    """
    for summary in reversed(summaries):
        if name in summary.axes:
            return summary.axes[name]
    return AxesNamed(metric=name)


def verdict_and_measured(side: Side) -> tuple[str, str]:
    """Return the verdict of one run, and what it measured."""
    verdict = side.verdict
    if not verdict:
        verdict = NOT_DECIDED if side.is_open else NOT_JUDGED
    measured = side.ratio_words or show(side.measured or side.why, 300)
    return show(verdict, 40), measured


def side_words(side: Side | None) -> str:
    """Return what one run found for a claim."""
    if side is None:
        return "not claimed"
    return "  ".join(filter(None, verdict_and_measured(side)))


def pair_words(pair: ClaimPair) -> list[str]:
    """Return how the runs differ on a claim, and by how much."""
    words = [difference_words(pair), key_words(pair)]
    for number, shift in enumerate(pair.shifts, 2):
        if shift:
            words.append(shift_words(number, shift))
    return list(filter(None, words))


def shift_words(number: int, shift: Shift) -> str:
    """Return how the estimate of a later run differs from that of the first run."""
    return f"run {number} / run 1: {shift.words}{shift.lone_words}"


def number_tables(compared: Comparison) -> list[NumberTable]:
    """Return the table of the times of calls, and that of the values measured with lab.memory.

    Values that are the same in all runs are only counted, in the note of their table.
    """
    tables = []
    if compared.times:
        rows = []
        for row in time_rows(compared):
            rows.append(_cells(row.label, row.values, seconds, compared.lacks, row.shifts))
        tables.append(NumberTable(f"Median time of a {compared.of}", rows))
    if compared.sizes:
        rows = []
        for name, values in compared.sizes:
            if len(set(values)) > 1:
                rows.append(_cells(name, values, formatter_of(name), compared.lacks))
        same_count = len(compared.sizes) - len(rows)
        note = ""
        if same_count:
            note = f"{plural(same_count, 'value')} are the same"
        tables.append(NumberTable("Measured with lab.memory", rows, note))
    return tables


def command_tables(subjects: Sequence[ReportedRun], compared: Comparison) -> list[NumberTable]:
    """Return the numbers of watched commands, and what their difference means; else nothing."""
    rows = []
    for row in rows_of_commands(subjects):
        rows.append(_cells(row.name, row.values, row.spell, compared.lacks, row.shifts))
    if not rows:
        return []
    return [NumberTable("Measured in one process each", rows, about_one_process(subjects))]


def _cells(
    name: str,
    values: Values,
    spell: Callable[[float], str],
    lacks: Sequence[str],
    shifts: Sequence[Shift | None] = (),
) -> list[str]:
    """Return the cells of a row: the name, then the value of each run.

    From the second run on, the ratio to the first run follows, with its interval if it has one.
    """
    first_value = values[0]
    row = [shorten(name, 60)]
    for value, lack, shift in zip_longest(values, lacks, [None, *shifts]):
        cell = lack
        if value is not None:
            cell = spell(value)
        if len(row) > 1 and value is not None and first_value:
            cell += f" x{brief(value / first_value)}"
        if shift:
            cell += f" [{brief(shift.low)}, {brief(shift.high)}]"
        row.append(cell)
    return row
