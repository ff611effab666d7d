"""The Compare screen: runs side by side.

The differences come first, then the claims and the numbers. The curves of the runs are overlaid.
"""

import os
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.message import Message

from tuilab.catalogue.imports import SOURCE_LIMIT
from tuilab.errors import TuilabError
from tuilab.record.live_run import Watch
from tuilab.runs import read_entry, store
from tuilab.runs.command_line import root_option
from tuilab.runs.comparing import comparison
from tuilab.runs.entry import RunEntry
from tuilab.runs.representative import is_baseline
from tuilab.storage.files import read_regular
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import to_content
from tuilab.tui.screens.page import Page
from tuilab.tui.state.run_source import GONE, WAS_DELETED
from tuilab.tui.widgets.chart import Chart
from tuilab.tui.widgets.compare import compared
from tuilab.tui.widgets.compare.curves import CurvesColumn
from tuilab.tui.widgets.sheet import SheetPane

_POLL_S = 1.5  # between two polls for new records and deleted runs


class ComparePage(Page):
    """Two or more runs. The others are compared with the first one."""

    PLACE = "compare"
    BINDINGS = bindings("compare")
    DEFAULT_CSS = """
    ComparePage #body { layout: vertical; height: 1fr; }
    ComparePage #sheets { width: 1fr; height: 1fr; overflow-y: auto; scrollbar-size-vertical: 1; }
    ComparePage #numbers.is-empty { display: none; }
    ComparePage #curves { height: 40%; min-height: 10; max-height: 55%; }
    ComparePage.-wide #body { layout: horizontal; }
    ComparePage.-wide #curves, ComparePage.-zoom #curves {
        width: 1fr; height: 1fr; max-height: 100%;
    }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-wide")]

    class Loaded(Message):
        """The runs were read; `problems` has a sentence for each run that cannot be read."""

        def __init__(
            self,
            watches: list[Watch],
            entries: list[RunEntry],
            changes: list[str],
            baselines: set[str],
            problems: list[str],
        ) -> None:
            super().__init__()
            self.watches = watches
            self.entries = entries
            self.changes = changes
            self.baselines = baselines
            self.problems = problems

    def __init__(self, run_dirs: Sequence[Path], clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._run_dirs = list(dict.fromkeys(run_dirs))
        self._clock = clock
        self._watches: list[Watch] = []
        self._entries: list[RunEntry] = []
        self._changes: list[str] = []
        self._baselines: set[str] = set()
        self._deleted: set[int] = set()  # places of the runs that were deleted after they were read
        self.is_reading = True

    def compose_body(self) -> ComposeResult:
        self.curves = CurvesColumn()
        with Container(id="body"):
            with VerticalScroll(id="sheets", can_focus=False):
                yield SheetPane("What differs", id="differences")
                yield SheetPane("Claims", id="claims")
                yield SheetPane("Numbers", id="numbers")
            yield self.curves

    def on_mount(self) -> None:
        self.query_one("#differences").focus()
        self.heading.show(Content.assemble(("tuilab", "bold"), "  compare  ", ("reading …", "dim")))
        self.set_interval(_POLL_S, self.follow)
        self._read()

    def on_unmount(self) -> None:
        for watch in self._watches:
            watch.close()

    def command(self) -> str:
        names = [store.short_id(run_dir.name) for run_dir in self._run_dirs]
        return shlex.join(["tuilab", "compare", *names, *root_option(self.desk.root)])

    # ---- reading

    @work(thread=True, exclusive=True, group="read")
    def _read(self) -> None:
        """Read all runs in a thread, and post `Loaded`.

        Changes of the source are only described if all runs are of the same scenario.
        """
        watches: list[Watch] = []
        entries: list[RunEntry] = []
        problems: list[str] = []
        for run_dir in self._run_dirs:
            try:
                watch = Watch(run_dir, may_be_folded=True)
                entries.append(_caught_up(watch))
            except TuilabError as problem:
                problems.append(str(problem))
            else:
                watches.append(watch)
        run_dirs = [watch.run_dir for watch in watches]
        scenarios = {entry.scenario for entry in entries}
        changes: list[str] = []
        if len(scenarios) == 1:
            changes = _describe_source_changes(run_dirs)
        baselines = {run_dir.name for run_dir in run_dirs if is_baseline(run_dir)}
        self.post_message(self.Loaded(watches, entries, changes, baselines, problems))

    def on_compare_page_loaded(self, message: Loaded) -> None:
        """Show the runs that could be read, and a message for each other one."""
        self._watches = message.watches
        self._entries = message.entries
        self._changes = message.changes
        self._baselines = message.baselines
        self.is_reading = False
        for problem in message.problems:
            self.lab.tell(problem)
        if len(self._watches) < 2:
            self.lab.tell("Nothing to compare: fewer than two of these runs can be read.")
        self._show()

    def follow(self) -> None:
        """Read what is new of the running runs, and show a message for each deleted run.

        If a run cannot be read, show the reason and leave the rest of the screen as it is.
        """
        if not self.is_current:
            return
        has_lost = self._note_deleted()
        running = self._list_running()
        if not running and not has_lost:
            return
        for index in running:
            try:
                self._entries[index] = _caught_up(self._watches[index])
            except TuilabError as problem:
                self.lab.tell(str(problem))
                return
        self._show()

    def _note_deleted(self) -> bool:
        """Show one message for each run that was deleted meanwhile; its data stay on the screen.

        Return whether one of these runs was running when it was last read.
        """
        has_lost = False
        for index, watch in enumerate(self._watches):
            if index in self._deleted or os.path.lexists(watch.run_dir):
                continue
            self._deleted.add(index)
            self.lab.tell(f"run {compared.number(index)} {WAS_DELETED}")
            entry = self._entries[index]
            if entry.is_running:
                self._entries[index] = entry._replace(state=GONE)
                has_lost = True
        return has_lost

    def _list_running(self) -> list[int]:
        """Return the places of the runs that were running when they were last read."""
        return [index for index, entry in enumerate(self._entries) if entry.is_running]

    # ---- what is shown

    def _show(self) -> None:
        """Compare the runs as they were read last, and show the result; do nothing without runs."""
        if not self._watches:
            return
        summaries = [watch.summary for watch in self._watches]
        running = self._list_running()
        result = comparison.compare(summaries, running)

        runs = compared.run_rows(self._entries, self._baselines, self._clock())
        differences = compared.difference_sections(result, self._changes)
        self.query_one("#differences", SheetPane).sheet.show([runs, *differences])
        claims = compared.claim_sections(result)
        self.query_one("#claims", SheetPane).sheet.show(claims)
        numbers = compared.number_sections(result)
        self.query_one("#numbers", SheetPane).sheet.show(numbers)
        self.query_one("#numbers").set_class(not numbers, "is-empty")

        names = []
        for index, entry in enumerate(self._entries):
            names.append(f"{compared.number(index)} {store.short_id(entry.run)}")
        scenarios = " and ".join(dict.fromkeys(result.names))
        heading = Content.assemble(("tuilab", "bold"), "  compare  ", to_content(scenarios, 100))
        self.heading.show(heading, to_content("  ".join(names), 200, "dim"))
        self.curves.show(summaries, result.series, are_over=not running)

    # ---- keys

    def action_next_curve(self, step: int) -> None:
        self.curves.next_curve(step)

    def action_next_repeat(self) -> None:
        if message := self.curves.next_repeat():
            self.lab.tell(message, is_problem=False)

    def action_toggle_log(self) -> None:
        self.curves.toggle_log()

    def action_maximise(self) -> None:
        """Show the focused pane alone, or all of them again."""
        columns = (self.query_one("#sheets"), self.curves)
        panes = (*self.query(SheetPane), *self.query(Chart))
        target = self.focused
        if self.has_class("-zoom"):
            self.remove_class("-zoom")
            for widget in (*panes, *columns):
                widget.styles.display = None
            self._show()
        elif isinstance(target, SheetPane | Chart):
            self.add_class("-zoom")
            for pane in panes:
                if pane is not target:
                    pane.styles.display = "none"
            for column in columns:
                if target not in column.children:
                    column.styles.display = "none"

    def action_back(self) -> None:
        """Leave the zoom, else leave the screen."""
        if self.has_class("-zoom"):
            self.action_maximise()
        else:
            self.lab.action_step_back()

    def action_export(self) -> None:
        self.export(self._run_dirs)

    def reset_layout(self) -> None:
        """Leave the zoom, so that the layout is the one of the start."""
        if self.has_class("-zoom"):
            self.action_maximise()


def _caught_up(watch: Watch) -> RunEntry:
    """Read what is new of a run, close its files, and return its entry.

    The files are closed because any number of runs may be compared.
    """
    watch.catch_up()
    state = watch.state()
    watch.close()
    if watch.summary.run is None:
        return read_entry.read_entry(watch.run_dir)
    return read_entry.entry_of(watch.run_dir, watch.summary, state)


def _describe_source_changes(run_dirs: Sequence[Path]) -> list[str]:
    """Return how the source of the last run differs from that of the first one, as lines of a diff.

    Return no lines if one of the two did not keep its source.
    """
    if len(run_dirs) < 2:
        return []
    try:
        first = read_regular(run_dirs[0] / "scenario.py", SOURCE_LIMIT)
        last = read_regular(run_dirs[-1] / "scenario.py", SOURCE_LIMIT)
    except OSError:
        return []
    return comparison.source_changes(first.decode(errors="replace"), last.decode(errors="replace"))
