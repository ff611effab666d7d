"""The table of a race of commands: what a step of each arm takes, and of what, beside each other."""

from collections.abc import Callable, Sequence
from statistics import geometric_mean, median

from tuilab.record.blocks import measure_of, times_of
from tuilab.record.events import RaceFinished, TableShown
from tuilab.record.summary import RunSummary
from tuilab.text import plural
from tuilab.words import number, seconds, size

ARMS = "arms"  # under which the table is kept
_STEP, _PEAK = "a step", "peak memory"
_PARTS = {"data_s": "waits for data", "backward_s": "backward", "optimizer_s": "optimizer", "rest_s": "forward + rest"}
_COUNTS = {
    "optimizer_steps": "optimizer steps a step",
    "backwards": "backwards a step",
    "skipped_steps": "left out by GradScaler",
}
_ALIKE = 0.05  # counts a step that differ by less are the same, and are not told


def arms_table(summary: RunSummary) -> TableShown:
    """Return the table: the median of the processes of each arm, and how far apart they are in what is judged."""
    races = [race for _, race in summary.differences if race.accounts]
    arms = list(dict.fromkeys(arm for race in races for arm in race.arms))
    rows = [*_judged(summary, arms), *_accounts(races, arms, measure_of(summary).name), *_disturbed(summary, arms)]
    return TableShown(title=f"median of {plural(len(races), 'process', 'processes')} an arm", head=["", *arms], rows=rows)


def _judged(summary: RunSummary, arms: Sequence[str]) -> list[list[str | int | float]]:
    """Return the rows of what is held against each other of the arms."""
    measure, times = measure_of(summary), times_of(summary)
    name = _STEP if measure.unit == "s" else measure.name

    def row(label: str, of: Callable[[list[float]], float]) -> list[str | int | float]:
        return [label, *(number(of(times[arm]), measure.unit, 3) if times.get(arm) else "n/a" for arm in arms)]

    least, most = ("fastest", "slowest") if measure.unit == "s" else ("least", "most")
    are_several = any(len(found) > 1 for found in times.values())
    ends = [row(least, min), row(most, max)] if are_several else []
    ratios: list[str | int | float] = [f"{arms[0]}/arm, mean of repeats", *(_ratio(summary, arms[0], arm) for arm in arms)]
    return [row(name, median), *ends, ratios]


def _ratio(summary: RunSummary, base: str, arm: str) -> str:
    """Return how many times as much as another arm the first has: the mean over the repeats, as a verdict has it."""
    pairs = [(blocks[-1].step_s, below[-1].step_s) for (writer, name), blocks in summary.blocks.items() if name == base
             and (below := summary.blocks.get((writer, arm)))]  # fmt: skip
    return number(geometric_mean(one / other for one, other in pairs), digits=3) if pairs else "n/a"


def _accounts(races: Sequence[RaceFinished], arms: Sequence[str], judged: str) -> list[list[str | int | float]]:
    """Return the rows of what else is told of the arms, without what is judged and without counts that are the same."""

    def of(arm: str, name: str) -> float | None:
        found = [race.accounts[arm][name] for race in races if name in race.accounts.get(arm, {})]
        return median(found) if found else None

    def row(label: str, name: str, spell: Callable[[float], str]) -> list[str | int | float]:
        found = [of(arm, name) for arm in arms]
        return [label, *("n/a" if value is None else spell(value) for value in found)]

    rows = [
        row(label, name, seconds) for name, label in {"step_s": _STEP, **_PARTS}.items() if any(of(arm, name) for arm in arms)
    ]
    if judged == "time":
        rows = [row("steps that count", "steps", "{:.0f}".format), *(one for one in rows if one[0] != _STEP)]
    for name, label in _COUNTS.items():
        counts = [of(arm, name) or 0.0 for arm in arms]
        rows += [row(label, name, "{:.3g}".format)] if max(counts) - min(counts) > _ALIKE else []
    rows += [row("CPU time in all", "cpu_s", seconds)]
    return rows + ([row(_PEAK, "peak_bytes", size)] if judged != _PEAK else [])


def _disturbed(summary: RunSummary, arms: Sequence[str]) -> list[list[str | int | float]]:
    """Return a row of how many processes the sensors say were disturbed, if any were."""
    counts = [
        sum(block.is_disturbed for (_, name), blocks in summary.blocks.items() if name == arm for block in blocks)
        for arm in arms
    ]
    return [["disturbed processes", *map(str, counts)]] if any(counts) else []
