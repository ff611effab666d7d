"""Builds the table of a race of commands: the times of a step of each arm, and their parts."""

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import geometric_mean, median
from typing import NamedTuple

from tuilab.record.blocks import is_on_cpu, measure_of, scale_of
from tuilab.record.events import RaceFinished, TableShown
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block
from tuilab.text.display import plural
from tuilab.text.words import format_number, seconds, size

ARMS = "arms"  # key of the table in `RunSummary.figures`
_STEP = "a step"
_STEP_ON_WALL = "a step on the wall clock"
_STEP_CPU = "CPU time of a step"
_PEAK = "peak memory"
PARTS = {
    "data_s": "waits for data",
    "backward_s": "backward",
    "optimizer_s": "optimizer",
    "rest_s": "forward + rest",
}
_COUNTS = {
    "optimizer_steps": "optimizer steps a step",
    "backwards": "backwards a step",
    "skipped_steps": "left out by GradScaler",
}
_ALIKE = 0.05  # counts a step that differ by no more are the same, and are left out
_Row = list[str | int | float]


class _Clock(NamedTuple):
    """A quantity that is compared between the arms, and how to read it from a block."""

    name: str
    unit: str
    of: str  # in the label of the ratios
    read: Callable[[Block], float | None]


def update_arms_table(summary: RunSummary) -> None:
    """Show the table of a race of commands again; nothing in a run without such a race.

    A tuning has a table of its treatments instead.
    """
    if summary.tuning.treatments:
        return
    races = [race for _, race in summary.differences if race.accounts and race.arms]
    if races:
        summary.figures[ARMS] = _arms_table(summary, races)


def _arms_table(summary: RunSummary, races: Sequence[RaceFinished]) -> TableShown:
    """Return the table: the median of the processes of each arm, and the range of judged rows."""
    arms_in_order: dict[str, None] = {}
    for race in races:
        arms_in_order |= dict.fromkeys(race.arms)
    arms = list(arms_in_order)
    rows = _judged_rows(summary, arms)
    rows += _account_rows(races, arms, _labels_of_judged(summary))
    rows += _disturbed_rows(summary, arms)
    processes = plural(len(races), "process", "processes")
    return TableShown(title=f"median of {processes} an arm", head=["", *arms], rows=rows)


# ---- what is judged


def _judged_rows(summary: RunSummary, arms: Sequence[str]) -> list[_Row]:
    """Return the rows of what is compared between the arms; the judged clock is first."""
    measure = measure_of(summary)
    scale = scale_of(measure.unit)
    on_wall = _Clock(measure.name, measure.unit, "", lambda block: block.step_s * scale)
    if measure.unit != "s":
        return _rows_of(summary, arms, on_wall)
    if not _has_cpu_times(summary):
        return _rows_of(summary, arms, on_wall._replace(name=_STEP))
    on_wall = on_wall._replace(name=_STEP_ON_WALL, of=" on the wall clock")
    rows = _rows_of(summary, arms, on_wall)
    if is_on_cpu(summary):
        on_cpu = _Clock(_STEP_CPU, "s", " of CPU time", lambda block: block.thread_s)
        rows = _rows_of(summary, arms, on_cpu) + rows
    return rows


def _has_cpu_times(summary: RunSummary) -> bool:
    """Return whether any block has a CPU time of its own."""
    times: list[float | None] = []
    for blocks in summary.blocks.values():
        times += [block.thread_s for block in blocks]
    return any(times)


def _rows_of(summary: RunSummary, arms: Sequence[str], clock: _Clock) -> list[_Row]:
    """Return the rows of one clock: medians, ranges, and the ratios of the first arm to each."""
    times = {arm: _times(summary, arm, clock) for arm in arms}

    def make_row(label: str, combine: Callable[[Collection[float]], float]) -> _Row:
        cells: _Row = [label]
        for arm in arms:
            values = times[arm].values()
            if values:
                cells.append(format_number(combine(values), clock.unit, 3))
            else:
                cells.append("n/a")
        return cells

    rows = [make_row(clock.name, median)]
    if any(len(values) > 1 for values in times.values()):
        is_time = clock.unit == "s"
        rows.append(make_row("fastest" if is_time else "least", min))
        rows.append(make_row("slowest" if is_time else "most", max))
    ratios: _Row = [f"{arms[0]}/arm{clock.of}, mean of repeats"]
    for arm in arms:
        ratios.append(_ratio(times[arms[0]], times[arm]))
    rows.append(ratios)
    return rows


def _times(summary: RunSummary, arm: str, clock: _Clock) -> dict[str, float]:
    """Return the times of an arm on a clock, by repeat."""
    times = {}
    for (writer, name), blocks in summary.blocks.items():
        if name == arm:
            value = clock.read(blocks[-1])
            if value:
                times[writer] = value
    return times


def _ratio(base: Mapping[str, float], other: Mapping[str, float]) -> str:
    """Return the ratio of the first arm to another: the mean over the repeats, as in a verdict."""
    ratios = [base[writer] / other[writer] for writer in base if writer in other]
    if not ratios:
        return "n/a"
    return format_number(geometric_mean(ratios), digits=3)


def _labels_of_judged(summary: RunSummary) -> set[str]:
    """Return the labels of the rows that show what is judged."""
    measure = measure_of(summary)
    if measure.unit != "s":
        return {measure.name}
    if is_on_cpu(summary):
        return {_STEP, _STEP_CPU}
    return {_STEP}


# ---- what else is known


def _account_rows(
    races: Sequence[RaceFinished], arms: Sequence[str], judged: Collection[str]
) -> list[_Row]:
    """Return the rows of what else is known of the arms.

    What is judged is left out, and so are counts that all arms have in common.
    """

    def median_of(arm: str, name: str) -> float | None:
        accounts = [race.accounts.get(arm, {}) for race in races]
        values = [account[name] for account in accounts if name in account]
        return median(values) if values else None

    def make_row(label: str, name: str, spell: Callable[[float], str]) -> _Row:
        cells: _Row = [label]
        for arm in arms:
            value = median_of(arm, name)
            cells.append("n/a" if value is None else spell(value))
        return cells

    rows = []
    if _STEP in judged:
        rows.append(make_row("steps that count", "steps", "{:.0f}".format))
    times = {"step_s": _STEP, "step_cpu_s": _STEP_CPU} | PARTS
    for name, label in times.items():
        if label not in judged and any(median_of(arm, name) for arm in arms):
            rows.append(make_row(label, name, seconds))
    for name, label in _COUNTS.items():
        counts = [median_of(arm, name) or 0.0 for arm in arms]
        if max(counts) - min(counts) > _ALIKE:
            rows.append(make_row(label, name, "{:.3g}".format))
    rows.append(make_row("CPU time in all", "cpu_s", seconds))
    if _PEAK not in judged:
        rows.append(make_row(_PEAK, "peak_bytes", size))
    return rows


def _disturbed_rows(summary: RunSummary, arms: Sequence[str]) -> list[_Row]:
    """Return a row with the number of disturbed processes of each arm; no row if there are none."""
    counts = dict.fromkeys(arms, 0)
    for (_, arm), blocks in summary.blocks.items():
        if arm in counts:
            counts[arm] += sum(block.is_disturbed for block in blocks)
    if not any(counts.values()):
        return []
    cells = [str(count) for count in counts.values()]
    return [["disturbed processes", *cells]]
