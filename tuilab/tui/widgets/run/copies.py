"""What can be copied of a run that is shown: the pane, its commands, each claim in a line, each value, each chart as text."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

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
from tuilab.tui.widgets.run.claims import against_first, in_a_line
from tuilab.tui.widgets.run.panes import Panes

_LONGEST = 100_000  # characters of a command


def copies(run: RunSource, view: View, panes: Panes, command: str) -> list[Item]:
    """Return what there is to copy, the pane that has the focus first."""
    focused = panes.focused
    items = [_of_pane(focused, panes)] if focused else []
    items.append(Item("command", command, command))
    if again := rerun_command(run.summary):
        items.append(Item("rerun", again, again))
    items += [Item("claim", said, f"{said}  ({_name(run)})") for said in _claims(run.summary)]
    items += _values(run.summary, view.cursor_t)
    items += [_of_pane(pane, panes) for pane in panes.every if pane is not focused]
    return [item for item in items if item.text.strip()]


def rerun_command(summary: RunSummary) -> str:
    """Return the command that makes a run again, as it may be pasted; nothing where its start was not recorded."""
    return show(rerun_line(summary.run, summary.planned_repeats), _LONGEST) if summary.run else ""


def _name(run: RunSource) -> str:
    told = run.summary.run
    return (
        f"{show(told.topic)}/{show(told.scenario)} {store.short_id(run.run_dir.name)}"
        if told
        else run.run_dir.name
    )


def _of_pane(pane: Pane, panes: Panes) -> Item:
    """Return a pane as it is drawn."""
    kind, _, name = panes.name_of(pane).partition(" ")
    is_text = isinstance(pane, TextPane)
    return Item("text" if is_text else "chart", f"{name or kind}, as shown", pane.as_text())


def _claims(summary: RunSummary) -> Iterator[str]:
    for claim in against_first(summary.claims).values():
        yield in_a_line(claim, summary)


def _values(summary: RunSummary, cursor_t: int | None) -> Iterator[Item]:
    """Yield the value of each series at the cursor, with all its digits; without a cursor the last."""
    found = [*summary.series.values()]
    often = Counter((series.name, series.arm) for series in found)
    for series in found:
        step, values = _at(series, cursor_t)
        repeat = _repeat_of(series, summary) if often[series.name, series.arm] > 1 else ""
        title = summary.axes_of(series.name).y or series.name
        name = " ".join(show(part, 40) for part in (title, series.arm, repeat) if part)
        told = " to ".join(format_number(value, unit_of(series.name)) for value in values)
        yield Item(
            "value", f"{name} at {format_number(step)}: {told}", " to ".join(map(_whole, values))
        )


def _repeat_of(series: Series, summary: RunSummary) -> str:
    worker = summary.workers.get(series.writer)
    return f"repeat {worker.started.repeat + 1}" if worker and worker.started else series.writer


def _at(series: Series, t: int | None) -> tuple[float, Sequence[float]]:
    """Return the step nearest to a moment and the value there; of points that were put together, the least and the greatest."""
    found = [(abs(bad.t - t), bad.step, [bad.value]) for bad in series.bad] if t is not None else []
    if t is not None and series.times:
        at = bisect_left(series.times, t)
        near = min(
            (one for one in (at - 1, at) if 0 <= one < len(series.times)),
            key=lambda one: abs(series.times[one] - t),
        )
        found.append(
            (
                abs(series.times[near] - t),
                series.steps[near],
                [series.lows[near], series.highs[near]],
            )
        )
    _, step, values = min(
        found, key=lambda one: one[0], default=(0, series.last_step, [series.last])
    )
    return step, [*dict.fromkeys(values)]


def _whole(value: float) -> str:
    """Return a number with every digit that tells it from its neighbours."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
