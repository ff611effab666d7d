"""The table of a race of commands: what a step of each arm takes, and of what, beside each other."""

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import geometric_mean, median
from typing import NamedTuple

from tuilab.record.blocks import is_on_cpu, measure_of, scale_of
from tuilab.record.events import RaceFinished, TableShown
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block
from tuilab.text.display import plural
from tuilab.text.words import format_number, seconds, size

ARMS = "arms"  # under which the table is kept
_STEP, _PEAK = "a step", "peak memory"
_STEP_ON_WALL, _STEP_CPU = "a step on the wall clock", "CPU time of a step"
_PARTS = {
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
_ALIKE = 0.05  # counts a step that differ by less are the same, and are not told
_Row = list[str | int | float]


class _Clock(NamedTuple):
    """What is compared between the arms: its name and unit, and how to read it from a block."""

    name: str
    unit: str
    of: str
    read: Callable[[Block], float | None]


def arms_table(summary: RunSummary) -> TableShown:
    """Return the table: the median of the processes of each arm, and how far apart they are in what is judged."""
    races = [race for _, race in summary.differences if race.accounts]
    arms = list(dict.fromkeys(arm for race in races for arm in race.arms))
    rows = [
        *_judged(summary, arms),
        *_accounts(races, arms, _judged_names(summary)),
        *_disturbed(summary, arms),
    ]
    return TableShown(
        title=f"median of {plural(len(races), 'process', 'processes')} an arm",
        head=["", *arms],
        rows=rows,
    )


def _judged(summary: RunSummary, arms: Sequence[str]) -> list[_Row]:
    """Return the rows of what is compared between the arms, the clock first that a verdict rests on."""
    measure = measure_of(summary)
    on_wall = _Clock(
        measure.name, measure.unit, "", lambda block: block.step_s * scale_of(measure.unit)
    )
    if measure.unit != "s":
        return _rows_of(summary, arms, on_wall)
    on_cpu = _Clock(_STEP_CPU, "s", " of CPU time", lambda block: block.thread_s)
    if not any(block.thread_s for blocks in summary.blocks.values() for block in blocks):
        return _rows_of(summary, arms, on_wall._replace(name=_STEP))
    on_wall = on_wall._replace(name=_STEP_ON_WALL, of=" on the wall clock")
    if is_on_cpu(summary):
        return [*_rows_of(summary, arms, on_cpu), *_rows_of(summary, arms, on_wall)]
    return _rows_of(summary, arms, on_wall)


def _rows_of(summary: RunSummary, arms: Sequence[str], clock: _Clock) -> list[_Row]:
    """Return the rows of one clock: the median of each arm, the ends, and the ratio of the first arm to each."""
    times = {arm: _times(summary, arm, clock) for arm in arms}

    def row(label: str, center: Callable[[Collection[float]], float]) -> _Row:
        cells = [
            format_number(center(times[arm].values()), clock.unit, 3) if times[arm] else "n/a"
            for arm in arms
        ]
        return [label, *cells]

    rows = [row(clock.name, median)]
    least, most = ("fastest", "slowest") if clock.unit == "s" else ("least", "most")
    if any(len(values) > 1 for values in times.values()):
        rows += [row(least, min), row(most, max)]
    ratios = [_ratio(times[arms[0]], times[arm]) for arm in arms]
    return [*rows, [f"{arms[0]}/arm{clock.of}, mean of repeats", *ratios]]


def _times(summary: RunSummary, arm: str, clock: _Clock) -> dict[str, float]:
    """Return what an arm took by a clock, by its repeats."""
    times = {}
    for (writer, name), blocks in summary.blocks.items():
        value = clock.read(blocks[-1]) if name == arm else None
        if value:
            times[writer] = value
    return times


def _ratio(base: Mapping[str, float], other: Mapping[str, float]) -> str:
    """Return how many times as much as another arm the first has: the mean over the repeats, as a verdict has it."""
    ratios = [base[writer] / other[writer] for writer in base if writer in other]
    return format_number(geometric_mean(ratios), digits=3) if ratios else "n/a"


def _judged_names(summary: RunSummary) -> set[str]:
    """Return the rows that the table has anyway."""
    measure = measure_of(summary)
    if measure.unit != "s":
        return {measure.name}
    return {_STEP, _STEP_CPU} if is_on_cpu(summary) else {_STEP}


def _accounts(
    races: Sequence[RaceFinished], arms: Sequence[str], judged: Collection[str]
) -> list[_Row]:
    """Return the rows of what else is known of the arms, without what is judged and without counts that are the same."""

    def of(arm: str, name: str) -> float | None:
        found = [race.accounts[arm][name] for race in races if name in race.accounts.get(arm, {})]
        return median(found) if found else None

    def row(label: str, name: str, spell: Callable[[float], str]) -> _Row:
        found = [of(arm, name) for arm in arms]
        return [label, *("n/a" if value is None else spell(value) for value in found)]

    rows = []
    if _STEP in judged:
        rows.append(row("steps that count", "steps", "{:.0f}".format))
    for name, label in {"step_s": _STEP, "step_cpu_s": _STEP_CPU, **_PARTS}.items():
        if label not in judged and any(of(arm, name) for arm in arms):
            rows.append(row(label, name, seconds))
    for name, label in _COUNTS.items():
        counts = [of(arm, name) or 0.0 for arm in arms]
        if max(counts) - min(counts) > _ALIKE:
            rows.append(row(label, name, "{:.3g}".format))
    rows.append(row("CPU time in all", "cpu_s", seconds))
    if _PEAK not in judged:
        rows.append(row(_PEAK, "peak_bytes", size))
    return rows


def _disturbed(summary: RunSummary, arms: Sequence[str]) -> list[list[str | int | float]]:
    """Return a row of how many processes the sensors say were disturbed, if any were."""
    counts = [
        sum(
            block.is_disturbed
            for (_, name), blocks in summary.blocks.items()
            if name == arm
            for block in blocks
        )
        for arm in arms
    ]
    return [["disturbed processes", *map(str, counts)]] if any(counts) else []
