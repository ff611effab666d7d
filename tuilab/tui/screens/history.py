"""The History screen: every run on this machine in a table, to open, compare, stop and delete.

`HistoryReader` reads the runs. `RunList`, `run_count` and `rundetails` show them. `deletion`
deletes them.
"""

import shlex
import time
from collections.abc import Callable
from functools import partial

from textual import on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tuilab.runs import disk_room, representative, store
from tuilab.runs.command_line import root_option
from tuilab.runs.disk_room import DiskRoom
from tuilab.runs.entry import RunEntry
from tuilab.runs.filters import parse, with_sweeps
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import to_content
from tuilab.tui.screens.page import Page
from tuilab.tui.state.history_reader import HistoryReader
from tuilab.tui.widgets.filterline import FilterLine
from tuilab.tui.widgets.history import deletion, note_line, ordering, run_count
from tuilab.tui.widgets.history.rundetails import details
from tuilab.tui.widgets.history.runlist import RunList
from tuilab.tui.widgets.info_line import InfoLine

_POLL_S = 1.5  # between two checks whether runs came, went or changed
_CLOCK_S = 60.0  # between two updates of the ages of runs, such as "3 min ago"


class HistoryPage(Page):
    """Lists the names of the runs at once, and adds the rest of each run when it has been read.

    The visible runs are read first.
    """

    PLACE = "history"
    BINDINGS = bindings("history")
    DEFAULT_CSS = """
    HistoryPage #details {
        height: auto; min-height: 3; max-height: 9; background: $surface; padding: 0 1;
    }
    HistoryPage #details { text-wrap: nowrap; text-overflow: ellipsis; }
    HistoryPage.-tall #details { height: 13; max-height: 13; }
    HistoryPage.-short #details { display: none; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-plain"), (32, "-tall")]

    class Deletable(Message):
        """The user wants to delete these runs, and they may be deleted."""

        def __init__(self, entries: list[RunEntry]) -> None:
            super().__init__()
            self.entries = entries

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock = clock
        self._reader = HistoryReader(self, lambda: self.desk.index, clock)
        self._order = ordering.ORDERS[0]

    @property
    def is_reading(self) -> bool:
        """Whether runs are still being read."""
        return self._reader.is_reading

    @property
    def is_listed(self) -> bool:
        return self._reader.is_listed

    def compose_body(self) -> ComposeResult:
        self.runs = RunList()
        self.filter = FilterLine(find_values=lambda: self._reader.values)
        yield self.filter
        self._disk = DiskRoom(self.desk.root)
        self.warning = InfoLine()
        yield self.warning
        yield self.runs
        yield Static(id="details")

    def on_mount(self) -> None:
        self.runs.focus()
        self.set_interval(_POLL_S, self._poll)
        self.set_interval(_CLOCK_S, self._show)
        self._show()

    def on_screen_resume(self) -> None:
        self._reader.look()

    def on_unmount(self) -> None:
        self._reader.save()

    def command(self) -> str:
        """Return the command line that shows the run at the cursor or compares the marked runs."""
        entry = self.runs.chosen
        words = ["tuilab", "runs"]
        if len(self.runs.marked) > 1:
            marked = [store.short_id(run) for run in self.runs.marked]
            words = ["tuilab", "compare", *marked]
        elif entry is not None:
            words = ["tuilab", "attach", store.short_id(entry.run)]
        return shlex.join([*words, *root_option(self.desk.root)])

    def places(self) -> list[str]:
        """Add the places of marked runs and of a running run, before that of the screen."""
        places = super().places()
        entry = self.runs.chosen
        special = []
        if self.runs.marked:
            special.append("marked runs")
        if entry is not None and entry.is_running:
            special.append("running run in the list")
        return [*places[:-1], *special, *places[-1:]]

    def _poll(self) -> None:
        if self.is_current:
            self._reader.look_again()
            self.warning.show(to_content(self._warning(), 600, "$text-error"))

    def _warning(self) -> str:
        """Return a warning if runs are running here and their disk is full; else an empty text."""
        if self._reader.is_any_recorded() and self._disk.is_full():
            return disk_room.describe_room(self.desk.root)
        return ""

    def on_history_reader_listed(self, message: HistoryReader.Listed) -> None:
        self._reader.take_list(message)
        deleted = [run for run in self.runs.marked if run not in self._reader.entries]
        self.runs.unmark(deleted)
        self._show()
        self._reader.read_more(lambda: self.runs.in_view, is_new_list=True)

    def on_history_reader_read(self, message: HistoryReader.Read) -> None:
        """Show the entries that were read.

        The whole list is laid out again only with a filter, which may match other runs now.
        """
        changed = self._reader.take(message.entries)
        if self.filter.value:
            self._show()
        elif changed:
            self.runs.refresh_changed(changed, self._clock())
            self._show_heading(len(self._reader.entries))
            self._show_details()
        self._reader.read_more_soon(lambda: self.runs.in_view)

    @on(FilterLine.Changed)
    def _show(self) -> None:
        """Show the runs that match the filter in the chosen order; if there are none, why."""
        reader = self._reader
        now_s = self._clock()
        run_filter = parse(with_sweeps(self.filter.value, reader.entries.values()), now_s)
        matching = reader.matching(run_filter)
        runs = ordering.sort_runs(matching, reader.entries, self._order, now_s)
        why_empty = run_filter.problem or run_count.why_empty(reader)
        sorted_column = ordering.column_of(self._order)
        self.runs.show(runs, reader.entries, reader.notes, now_s, why_empty, sorted_column)
        self._show_heading(len(runs))
        self._show_details()

    def _show_heading(self, matching_count: int) -> None:
        """Show the counts of runs, and the folder of runs if there is room for it."""
        heading = run_count.heading_of(
            self._reader,
            matching_count,
            len(self.runs.marked),
            self.runs.marks_hidden,
            self._order,
        )
        root = to_content(str(self.desk.root), 60, "dim")
        if self.size.width < max(120, heading.cell_length + root.cell_length + 4):
            root = Content("")
        self.heading.show(heading, root)

    @on(RunList.Moved)
    def _show_details(self) -> None:
        """Show the details of the run at the cursor, and the keys that work for it."""
        entry = self.runs.chosen
        pane = self.query_one("#details", Static)
        lines: list[Content] = []
        if entry is not None:
            notes = self._reader.notes_of(entry.run)
            width = self.size.width - pane.gutter.width
            lines = details(entry, notes, width, is_long=self.has_class("-tall"))
        pane.update(Content("\n").join(lines))
        self.show_keys()

    def on_filter_line_left(self) -> None:
        self.runs.focus()

    def action_move(self, rows: int) -> None:
        self.runs.move(rows)
        if abs(rows) > 1:
            self.runs.focus()

    def action_move_page(self, pages: int) -> None:
        self.runs.move(pages * self.runs.page)

    @on(RunList.Opened)
    def action_open(self) -> None:
        if self.runs.chosen is not None:
            self.lab.open_run(self.desk.root / self.runs.chosen.run)

    def action_filter(self) -> None:
        self.filter.open()

    def action_mark(self) -> None:
        self.runs.toggle_mark()
        self._show()

    def action_unmark(self) -> None:
        self.runs.unmark(list(self.runs.marked))
        self._show()

    def action_compare(self) -> None:
        """Compare the marked runs.

        A single marked run is compared with the run at the cursor. If that is the same run, or
        no run is marked, the run is compared with its reference.
        """
        runs = dict.fromkeys(self.runs.marked)
        if len(runs) < 2 and self.runs.chosen:
            runs[self.runs.chosen.run] = None
        run_dirs = [self.desk.root / run for run in runs]
        if len(run_dirs) == 1:
            self.compare_with_reference(run_dirs[0])
        elif run_dirs:
            self.lab.open_compare(run_dirs)

    def action_export(self) -> None:
        entries = self.runs.acted_on
        if entries:
            self.export([self.desk.root / entry.run for entry in entries])

    def action_replay(self) -> None:
        """Replay the run at the cursor; if it is running, show why it cannot be replayed."""
        entry = self.runs.chosen
        if entry is None:
            return
        if entry.is_running:
            self.lab.tell("a running run cannot be replayed yet", is_problem=False)
        else:
            self.lab.open_run(self.desk.root / entry.run, is_replay=True)

    def action_step_out(self) -> None:
        """Clear the filter. Without a filter, leave the screen."""
        if not self.filter.clear():
            self.lab.action_step_back()

    def action_delete(self) -> None:
        entries = self.runs.acted_on
        if entries:
            self._check_deletable(entries)

    @work(thread=True, group="deletable")
    def _check_deletable(self, entries: list[RunEntry]) -> None:
        """Show why one of the runs must not be deleted; if all may be deleted, post `Deletable`."""
        reason = deletion.why_not(self.desk.root, entries)
        if reason:
            self.app.call_from_thread(self.say_done, reason, is_problem=True)
        else:
            self.post_message(self.Deletable(entries))

    @work(group="question")
    async def on_history_page_deletable(self, message: Deletable) -> None:
        question = deletion.question_about(message.entries)
        if await self.app.push_screen_wait(question):
            runs = [entry.run for entry in message.entries]
            self.do(partial(deletion.delete, self.desk.root, runs))

    def action_stop(self) -> None:
        """Ask whether to stop the run; if it is stopping already, ask whether to kill it."""
        entry = self.runs.chosen
        if entry is not None:
            name = f"{entry.name} {store.short_id(entry.run)}"
            self.stop(self.desk.root / entry.run, name, entry.state)

    def action_pin(self) -> None:
        """Make the run the baseline of its scenario; if it is a baseline, remove the tag."""
        entry = self.runs.chosen
        if entry is None:
            return
        run_dir = self.desk.root / entry.run
        if representative.TAG in self._reader.notes_of(entry.run).tags:
            self.do(partial(representative.unpin, run_dir))
        else:
            self.do(partial(representative.pin, run_dir))

    def action_order(self) -> None:
        """Sort the runs by the next order, and move the cursor to the first run.

        A user who sorts the runs wants to see the first one.
        """
        self._order = ordering.next_order(self._order)
        self._show()
        self.runs.move(-len(self._reader.entries))

    @work(group="question")
    async def action_write(self, kind: str) -> None:
        """Write a note or tags onto the marked runs; without marks, onto the run at the cursor."""
        entries = self.runs.acted_on
        if not entries:
            return
        line = await self.app.push_screen_wait(note_line.line_for(kind, entries, self._reader))
        if line:
            runs = [entry.run for entry in entries]
            self.do(partial(note_line.write, kind, self.desk.root, runs, line))

    def say_done(self, message: str, *, is_problem: bool) -> None:
        """Show the result of an action, and list the runs again, which it may have changed."""
        super().say_done(message, is_problem=is_problem)
        if self.is_attached:
            self._reader.look()
