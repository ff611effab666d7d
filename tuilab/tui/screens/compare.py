"""The Compare screen: runs side by side; what differs comes first, then what came of it, and the curves overlaid."""

import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message

from tuilab.errors import TuilabError
from tuilab.files import read_regular
from tuilab.record.live_run import Watch
from tuilab.record.series import Series
from tuilab.reports.compare_text import axes_of
from tuilab.runs import ledger, store
from tuilab.runs.comparing import comparison
from tuilab.runs.comparing.comparison import Comparison
from tuilab.runs.ledger import Entry
from tuilab.text import show
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import plain
from tuilab.tui.screens.page import Page
from tuilab.tui.state.command_line import root_option
from tuilab.tui.state.view import View
from tuilab.tui.widgets.chart import Chart, Curves
from tuilab.tui.widgets.compare import compared
from tuilab.tui.widgets.sheetpane import SheetPane
from tuilab.words import unit_of

_POLL_S = 1.5  # while one of the runs goes on
_SOURCE_LIMIT = 1024 * 1024
_CHARTS = 4  # that are shown at once, where there is room


class ComparePage(Page):
    """Two runs or more; the first is the one that the others are compared with."""

    PLACE = "compare"
    BINDINGS = bindings("compare")
    DEFAULT_CSS = """
    ComparePage #body { layout: vertical; height: 1fr; overflow-y: auto; scrollbar-size-vertical: 1; }
    ComparePage #told { height: auto; overflow-y: hidden; scrollbar-size-vertical: 1; }
    ComparePage #curves { height: auto; }
    ComparePage Chart {
        height: 14; border: round $border-blurred; display: none;
        &:focus { border: round $border; }
        &.is-shown { display: block; }
    }
    ComparePage.-wide #body { layout: horizontal; overflow-y: hidden; }
    ComparePage.-wide #told { width: 1fr; height: 1fr; overflow-y: auto; }
    ComparePage.-wide #curves { width: 1fr; height: 1fr; }
    ComparePage.-wide Chart { height: 1fr; }
    ComparePage.-zoom #told { height: 1fr; overflow-y: auto; }
    ComparePage.-zoom #curves, ComparePage.-zoom Chart { height: 1fr; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-wide")]

    class Loaded(Message):
        """The runs were read; `problems` has a sentence for each that cannot be."""

        def __init__(self, watches: list[Watch], entries: list[Entry], changes: list[str], problems: list[str]) -> None:
            super().__init__()
            self.watches, self.entries, self.changes, self.problems = watches, entries, changes, problems

    def __init__(self, run_dirs: Sequence[Path], clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._run_dirs = list(dict.fromkeys(run_dirs))
        self._clock = clock
        self._watches: list[Watch] = []
        self._entries: list[Entry] = []
        self._changes: list[str] = []
        self._found: Comparison | None = None
        self._first_curve = 0
        self._views = [View()] * _CHARTS  # of each chart, whatever curves it shows
        self.is_reading = True

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(id="body", can_focus=False):
            with VerticalScroll(id="told", can_focus=False):
                yield SheetPane("What differs", id="differences")
                yield SheetPane("Claims", id="claims")
                yield SheetPane("Numbers", id="numbers")
            with Vertical(id="curves"):
                for at in range(_CHARTS):
                    chart = Chart(name=str(at), id=f"chart{at}")
                    chart.can_focus = True
                    yield chart

    def on_mount(self) -> None:
        self.query_one("#differences").focus()
        self.heading.show(Content.assemble(("tuilab", "bold"), "  compare  ", ("reading …", "dim")))
        self.set_interval(_POLL_S, self._poll)
        self._read()

    def on_unmount(self) -> None:
        for watch in self._watches:
            watch.close()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_curves)

    def command(self) -> str:
        names = [store.short_id(run_dir.name) for run_dir in self._run_dirs]
        return shlex.join(["tuilab", "compare", *names, *root_option(self.desk.root)])

    # ---- reading

    @work(thread=True, exclusive=True, group="read")
    def _read(self) -> None:
        watches, entries, problems = [], [], []
        for run_dir in self._run_dirs:
            try:
                watch = Watch(run_dir)
                entries.append(_caught_up(watch))
            except TuilabError as problem:
                problems.append(str(problem))
            else:
                watches.append(watch)
        is_one_scenario = len({entry.scenario for entry in entries}) == 1
        changes = _source_changes([watch.run_dir for watch in watches]) if is_one_scenario else []
        self.post_message(self.Loaded(watches, entries, changes, problems))

    def on_compare_page_loaded(self, message: Loaded) -> None:
        self._watches, self._entries, self._changes = message.watches, message.entries, message.changes
        self.is_reading = False
        for problem in message.problems:
            self.lab.tell(problem)
        if len(self._watches) < 2:
            self.lab.tell("There are not two runs that can be read, and so nothing to compare.")
        self._show()

    def _poll(self) -> None:
        """Follow the runs that go on."""
        going = [at for at, entry in enumerate(self._entries) if entry.is_running]
        if not going or not self.is_current:
            return
        for at in going:
            try:
                self._entries[at] = _caught_up(self._watches[at])
            except TuilabError as problem:
                self.lab.tell(str(problem))
                return
        self._show()

    # ---- what is shown

    def _show(self) -> None:
        if not self._watches:
            return
        found = self._found = comparison.compare([watch.summary for watch in self._watches])
        runs = compared.run_rows(self._entries, self._clock())
        self.query_one("#differences", SheetPane).sheet.show([runs, *compared.difference_sections(found, self._changes)])
        self.query_one("#claims", SheetPane).sheet.show(compared.claim_sections(found))
        numbers = compared.number_sections(found)
        self.query_one("#numbers", SheetPane).sheet.show(numbers)
        self.query_one("#numbers").display = bool(numbers)
        names = [f"{compared.number(at)} {store.short_id(entry.run)}" for at, entry in enumerate(self._entries)]
        scenarios = " and ".join(dict.fromkeys(found.names))
        left = Content.assemble(("tuilab", "bold"), "  compare  ", plain(scenarios, 100))
        self.heading.show(left, plain("  ".join(names), 200, "dim"))
        self._show_curves()

    def _show_curves(self) -> None:
        """Show a chart for each of the first series, as many as there is room for."""
        if self._found is None:
            return
        names = self._found.series
        room = self.query_one("#curves").size.height // 12 if self.has_class("-wide") else 1
        count = min(max(room, 1), _CHARTS, len(names))
        for at, chart in enumerate(self.query(Chart)):
            chart.set_class(at < count, "is-shown")
            if at < count:
                self._show_curve(chart, self._views[at], names[(self._first_curve + at) % len(names)], len(names))
        self.query_one("#curves").display = bool(names)

    def _show_curve(self, chart: Chart, view: View, name: str, count: int) -> None:
        lines: list[Series] = []
        labels: list[str] = []
        starts: list[int] = []
        for at, watch in enumerate(self._watches):
            for line in first_lines(watch.summary.series.values(), name):
                lines.append(line)
                labels.append(f"run {compared.number(at)} {line.arm}".strip() + ":")
                starts.append(watch.summary.first_t)
        is_over = not any(entry.is_running for entry in self._entries)
        axes = axes_of([watch.summary for watch in self._watches], name)
        curves = Curves(
            tuple(lines),
            tuple(labels),
            title=show(axes.y or name, 60),
            unit=unit_of(name),
            axes=axes,
            starts=tuple(starts),
            is_over=is_over,
        )
        chart.show_curves(curves, view)
        chart.border_subtitle = Content(f"{self._found.series.index(name) + 1} of {count}") if self._found and count > 1 else ""

    # ---- keys

    def action_next_curve(self) -> None:
        if self._found and self._found.series:
            self._first_curve = (self._first_curve + 1) % len(self._found.series)
            self._show_curves()

    def action_toggle_log(self) -> None:
        for at, chart in enumerate(self.query(Chart)):
            view = self._views[at]
            self._views[at] = replace(view, is_log=not (chart.is_log if view.is_log is None else view.is_log))
        self._show_curves()

    def on_chart_clicked(self, message: Chart.Clicked) -> None:
        at = list(self.query(Chart)).index(message.chart)
        self._views[at] = self._views[at].with_cursor(message.chart.key, message.spot)
        self._show_curves()

    def action_maximise(self) -> None:
        """Show the focused pane alone, or all of them again."""
        is_zoomed = self.has_class("-zoom")
        target = self.focused
        if not is_zoomed and not isinstance(target, SheetPane | Chart):
            return
        self.set_class(not is_zoomed, "-zoom")
        for part in (*self.query(SheetPane), *self.query(Chart)):
            part.styles.display = "none" if not is_zoomed and part is not target else None
        for column in (self.query_one("#told"), self.query_one("#curves")):
            column.styles.display = "none" if not is_zoomed and target not in column.children else None
        if is_zoomed:
            self._show()

    def action_back(self) -> None:
        """Out of the zoom, else out of the screen."""
        if self.has_class("-zoom"):
            self.action_maximise()
        else:
            self.lab.action_step_back()

    def action_export(self) -> None:
        self.export(self._run_dirs)

    def reset_layout(self) -> None:
        """Show everything as at first."""
        if self.has_class("-zoom"):
            self.action_maximise()


def _caught_up(watch: Watch) -> Entry:
    """Read what is new of a run and let go of it, as any number of runs may be compared; return a line about it."""
    while watch.refresh():
        pass
    state = watch.state()
    watch.close()
    return ledger.entry_of(watch.run_dir, watch.summary, state) if watch.summary.run else ledger.read(watch.run_dir)


def first_lines(series: Iterable[Series], name: str) -> list[Series]:
    """Return the lines of a series, one an arm: of the first process that logged it."""
    found: dict[str, Series] = {}
    for line in series:
        if line.name == name:
            found.setdefault(line.arm, line)
    return list(found.values())


def _source_changes(run_dirs: Sequence[Path]) -> list[str]:
    """Return how the source of the last run differs from that of the first, where both kept it."""
    if len(run_dirs) < 2:
        return []
    try:
        first, last = (read_regular(run_dirs[at] / "scenario.py", _SOURCE_LIMIT).decode(errors="replace") for at in (0, -1))
    except OSError:
        return []
    return comparison.source_changes(first, last)
