"""List the texts of a shown run that can be copied: panes, commands, claims and values."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.runs import store
from tuilab.runs.command_line import rerun_line
from tuilab.text.display import show
from tuilab.text.words import format_number, unit_of
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.menu import Item
from tuilab.tui.widgets.pane import Pane, TextPane
from tuilab.tui.widgets.run.claims import contradicted_first, describe_in_one_line
from tuilab.tui.widgets.run.panes import Panes

_MAX_COMMAND = 100_000  # characters


class _CopiedPoint(NamedTuple):
    """A value of a series. Points that were merged have the smallest and the largest value."""

    distance_ns: int  # from the cursor
    step: float
    values: Sequence[float]


def copies(run: RunSource, view: View, panes: Panes, command: str) -> list[Item]:
    """Return the texts that can be copied. The focused pane comes first."""
    items = []
    focused = panes.focused
    if focused:
        items.append(_pane_item(focused, panes))
    items.append(Item("command", command, command))
    rerun = rerun_command(run.summary)
    if rerun:
        items.append(Item("rerun", rerun, rerun))
    run_name = _name(run)
    for claim in contradicted_first(run.summary.claims).values():
        line = describe_in_one_line(claim, run.summary)
        items.append(Item("claim", line, f"{line}  ({run_name})"))
    items += _value_items(run.summary, view.cursor_t)
    for pane in panes.every:
        if pane is not focused:
            items.append(_pane_item(pane, panes))
    return [item for item in items if item.text.strip()]


def rerun_command(summary: RunSummary) -> str:
    """Return the command that runs a run again; nothing if its start was not recorded."""
    if not summary.run:
        return ""
    return show(rerun_line(summary.run, summary.planned_repeats), _MAX_COMMAND)


def _name(run: RunSource) -> str:
    """Return a run as `topic/scenario id`; without a recorded start, the name of its folder."""
    started = run.summary.run
    if not started:
        return run.run_dir.name
    run_id = store.short_id(run.run_dir.name)
    return f"{show(started.topic)}/{show(started.scenario)} {run_id}"


def _pane_item(pane: Pane, panes: Panes) -> Item:
    """Return a pane as it is drawn."""
    kind, _, name = panes.name_of(pane).partition(" ")
    form = "text" if isinstance(pane, TextPane) else "chart"
    return Item(form, f"{name or kind}, as shown", pane.as_text())


def _value_items(summary: RunSummary, cursor_t: int | None) -> Iterator[Item]:
    """Yield the value of each series at the cursor with all its digits.

    Without a cursor, the last value is yielded.
    """
    repeat_counts = Counter((series.name, series.arm) for series in summary.series.values())
    for series in summary.series.values():
        point = _point_at(series, cursor_t)
        values = list(dict.fromkeys(point.values))
        name_parts = [summary.axes_of(series.name).y or series.name, series.arm]
        if repeat_counts[series.name, series.arm] > 1:
            name_parts.append(_describe_repeat(series, summary))
        name = " ".join(show(part, 40) for part in name_parts if part)
        unit = unit_of(series.name)
        rounded = " to ".join(format_number(value, unit) for value in values)
        exact = " to ".join(_all_digits(value) for value in values)
        yield Item("value", f"{name} at {format_number(point.step)}: {rounded}", exact)


def _describe_repeat(series: Series, summary: RunSummary) -> str:
    """Return `repeat 2` for a series; if its process has not started, the name of the process."""
    worker = summary.workers.get(series.writer)
    if worker and worker.started:
        return f"repeat {worker.started.repeat + 1}"
    return series.writer


def _point_at(series: Series, t: int | None) -> _CopiedPoint:
    """Return the point nearest to a moment; without a moment, the last point."""
    last = _CopiedPoint(0, series.last_step, [series.last])
    if t is None:
        return last
    points = []
    for bad in series.bad:
        points.append(_CopiedPoint(abs(bad.t - t), bad.step, [bad.value]))
    after = bisect_left(series.times, t)
    for i in (after - 1, after):
        if 0 <= i < len(series.times):
            distance_ns = abs(series.times[i] - t)
            values = [series.lows[i], series.highs[i]]
            points.append(_CopiedPoint(distance_ns, series.steps[i], values))
    return min(points, key=lambda point: point.distance_ns, default=last)


def _all_digits(value: float) -> str:
    """Return a number with enough digits to tell it from its neighbours."""
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value)
