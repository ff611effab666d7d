"""The History screen: every run of this box as a table; open, compare, stop and delete them."""

import os
import shlex
import time
from collections.abc import Callable, Sequence

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tuilab.engine import launch
from tuilab.errors import TuilabError
from tuilab.runs import deleting, notes, store
from tuilab.runs.ledger import Entry
from tuilab.runs.notes import Notes
from tuilab.text import plural
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import plain
from tuilab.tui.looks.moments import exactly
from tuilab.tui.screens.page import Page
from tuilab.tui.state.command_line import root_option
from tuilab.tui.state.run_index import KnownRuns
from tuilab.tui.widgets.filterline import FilterLine
from tuilab.tui.widgets.history.rundetails import details
from tuilab.tui.widgets.history.runlist import RunList
from tuilab.tui.widgets.question import Question
from tuilab.words import size

_POLL_S = 1.5  # while a run goes on
_CLOCK_S = 60.0  # the words of the past age
_PORTION_S = 0.03  # of reading, before the screen has its turn
_PAUSE_S = 0.01


class HistoryPage(Page):
    """The names of the runs are there at once; what happened in them comes as it is read, the visible ones first."""

    PLACE = "history"
    BINDINGS = bindings("history")
    DEFAULT_CSS = """
    HistoryPage #details { height: 3; background: $surface; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    HistoryPage.-tall #details { height: 13; }
    HistoryPage.-short #details { display: none; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-plain"), (32, "-tall")]

    class Listed(Message):
        """The folders of the runs were listed."""

        def __init__(self, runs: list[str], known: dict[str, Entry], notes: dict[str, Notes], problem: str = "") -> None:
            super().__init__()
            self.runs, self.known, self.notes, self.problem = runs, known, notes, problem

    class Read(Message):
        """Something was learnt about some runs."""

        def __init__(self, entries: list[Entry]) -> None:
            super().__init__()
            self.entries = entries

    class Deletable(Message):
        """Runs that the user wants to delete, and that may be."""

        def __init__(self, entries: list[Entry]) -> None:
            super().__init__()
            self.entries = entries

    class Done(Message):
        """Something was done that the user asked for; `text` says what."""

        def __init__(self, text: str, *, is_problem: bool) -> None:
            super().__init__()
            self.text, self.is_problem = text, is_problem

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock = clock
        self._known = KnownRuns()
        self._problem = ""
        self._listed_at: float | None = None  # when the folder of runs was last changed, as it was listed
        self._stopping: set[str] = set()
        self.is_reading = True

    def compose_body(self) -> ComposeResult:
        yield FilterLine()
        yield RunList()
        yield Static(id="details")

    def on_mount(self) -> None:
        self.runs.focus()
        self.set_interval(_POLL_S, self._poll)
        self.set_interval(_CLOCK_S, self._show)
        self._show()

    def on_screen_resume(self) -> None:
        self._list()

    def on_unmount(self) -> None:
        self._remember()

    @property
    def runs(self) -> RunList:
        return self.query_one(RunList)

    def command(self) -> str:
        """Return what shows the run on the command line, or compares the marked ones."""
        entry = self.runs.chosen
        words = ["tuilab", "runs"]
        if len(self.runs.marked) > 1:
            words = ["tuilab", "compare", *map(store.short_id, self.runs.marked)]
        elif entry is not None:
            words = ["tuilab", "attach", store.short_id(entry.run)]
        return shlex.join([*words, *root_option(self.desk.root)])

    def places(self) -> list[str]:
        chosen = self.runs.chosen
        special = ["marked runs"] if self.runs.marked else []
        special += ["running run"] if chosen and chosen.is_running else []
        return [*super().places()[:-1], *special, *super().places()[-1:]]

    # ---- learning about the runs, beside the main path

    @work(thread=True, exclusive=True, group="list")
    def _list(self) -> None:
        root = self.desk.root
        self._listed_at = store.changed_at(root)
        known = {} if self._known.is_listed else self.desk.ledger.over()
        try:
            runs = [run_dir.name for run_dir in store.list_runs(root)]
        except TuilabError as problem:
            self.post_message(self.Listed([], {}, {}, str(problem)))
        else:
            written = {run: notes.read(root / run) for run in runs if os.path.lexists(f"{root}/{run}/{notes.FILE}")}
            self.post_message(self.Listed(runs, known, written))

    @work(thread=True, exclusive=True, group="read")
    def _read(self, runs: Sequence[str]) -> None:
        """Read about some runs, for a short time, and say what was learnt."""
        deadline = time.monotonic() + _PORTION_S
        entries = []
        for run in runs:
            entries.append(self.desk.ledger.look(self.desk.root / run))
            if time.monotonic() > deadline:
                break
        self.post_message(self.Read(entries))

    @work(thread=True, group="remember")
    def _remember(self) -> None:
        if self.desk.ledger.keep():
            self._listed_at = store.changed_at(self.desk.root)

    def on_history_page_listed(self, message: Listed) -> None:
        self._problem = message.problem
        self._known.take_list(message.runs, message.known, message.notes)
        self.runs.unmark([run for run in self.runs.marked if run not in self._known.entries])
        self._show()
        self._read_more(also=self._known.going_on(self._clock()))

    def on_history_page_read(self, message: Read) -> None:
        """Take in what was learnt; the whole list is gone through only where a filter may see it differently."""
        changed = self._known.take(message.entries)
        if self.query_one(FilterLine).words:
            self._show()
        elif changed:
            self.runs.refresh_changed(changed, self._clock())
            self._show_heading(len(self._known.entries))
            self._show_details()
        self.set_timer(_PAUSE_S, self._read_more)

    def _read_more(self, also: Sequence[str] = ()) -> None:
        """Read the next portion; remember everything once all is read."""
        wanted = self._known.to_read(also, self.runs.in_view)
        self.is_reading = bool(wanted)
        if wanted:
            self._read(wanted)
        elif self.desk.ledger.has_news and not self._known.going_on(self._clock()):
            self._remember()

    def _poll(self) -> None:
        """Look again at what goes on, and for runs that came or went; nobody is asked about what stays as it is."""
        if not self.is_current or self.is_reading:
            return
        if self._known.going_on(self._clock()) or store.changed_at(self.desk.root) != self._listed_at:
            self._list()

    # ---- what is shown

    def _show(self) -> None:
        known = self._known
        runs = known.with_words(self.query_one(FilterLine).words)
        self.runs.show(runs, known.entries, known.notes, self._clock(), self._why_empty())
        self._show_heading(len(runs))
        self._show_details()

    def _why_empty(self) -> str:
        if self._problem:
            return self._problem
        if not self._known.is_listed:
            return "Reading the folder of runs …"
        if self._known.entries:
            return "No run has all these words; esc shows all."
        return "No runs yet. Choose a scenario (esc) and press enter there; or: tuilab run softmax --headless"

    def _show_heading(self, matching: int) -> None:
        known = self._known
        total, used = len(known.entries), size(known.bytes_known)
        count = f"{matching:,} of {total:,} runs" if matching != total else f"{total:,} run{'s' * (total != 1)}"
        parts = [count] if known.is_listed else []
        if known.sized:
            parts.append(f"{used} on disk" if known.sized == total else f"{used} on disk in {known.sized:,}")
        if self.runs.marked:
            parts.append(f"{len(self.runs.marked)} marked")
        left = Content.assemble(("tuilab", "bold"), "  history  ", ("  ".join(parts), "dim"))
        self.heading.show(left, plain(str(self.desk.root), 60, "dim") if self.size.width >= 120 else Content(""))

    def _show_details(self) -> None:
        entry = self.runs.chosen
        lines = details(entry, self._known.notes_of(entry.run), is_long=self.has_class("-tall")) if entry else []
        self.query_one("#details", Static).update(Content("\n").join(lines))
        self.show_keys()

    def on_run_list_moved(self) -> None:
        self._show_details()

    def on_run_list_opened(self) -> None:
        self.action_open()

    def on_filter_line_changed(self) -> None:
        self._show()

    def on_filter_line_left(self) -> None:
        self.runs.focus()

    # ---- keys

    def action_move(self, rows: int) -> None:
        self.runs.move(rows)
        self.runs.focus() if abs(rows) > 1 else None

    def action_move_page(self, pages: int) -> None:
        self.runs.move(pages * self.runs.page)

    def action_open(self) -> None:
        if self.runs.chosen is not None:
            self.lab.open_run(self.desk.root / self.runs.chosen.run)

    def action_filter(self) -> None:
        self.query_one(FilterLine).open()

    def action_mark(self) -> None:
        self.runs.toggle_mark()
        self._show()

    def action_unmark(self) -> None:
        self.runs.unmark(list(self.runs.marked))
        self._show()

    def action_compare(self) -> None:
        runs = list(self.runs.marked)
        if len(runs) < 2:
            runs = self._pair()
        if runs:
            self.lab.open_compare([self.desk.root / run for run in runs])
        else:
            self.lab.tell("Mark two runs or more with space; there is no other run of this scenario.")

    def _pair(self) -> list[str]:
        """Return this run (or the marked one) and the newest other one of its scenario."""
        run = next(iter(self.runs.marked), self.runs.chosen.run if self.runs.chosen else "")
        other = self._known.other_of_scenario(run) if run in self._known.entries else ""
        return [other, run] if other else []

    def action_export(self) -> None:
        if runs := self._chosen():
            self.export([self.desk.root / entry.run for entry in runs])

    def action_replay(self) -> None:
        entry = self.runs.chosen
        if entry is not None and entry.is_running:
            self.lab.tell("a run that goes on cannot be played again yet", is_problem=False)
        elif entry is not None:
            self.lab.open_run(self.desk.root / entry.run, is_replay=True)

    def action_step_out(self) -> None:
        """Show all runs again, else out of the screen."""
        if not self.query_one(FilterLine).clear():
            self.lab.action_step_back()

    def _chosen(self) -> list[Entry]:
        """Return the marked runs, else the one that the cursor is on."""
        marked = [self._known.entries[run] for run in self.runs.marked if run in self._known.entries]
        return marked or ([self.runs.chosen] if self.runs.chosen else [])

    def action_delete(self) -> None:
        if chosen := self._chosen():
            self._look_whether_deletable(chosen)

    @work(thread=True, group="deletable")
    def _look_whether_deletable(self, chosen: list[Entry]) -> None:
        """Say why one of them must not be deleted, or that all may; processes are looked for, which takes a moment."""
        reasons = (deleting.why_not(self.desk.root / entry.run, entry) for entry in chosen)
        if why := next(filter(None, reasons), ""):
            self.post_message(self.Done(why, is_problem=True))
        else:
            self.post_message(self.Deletable(chosen))

    @work(group="question")
    async def on_history_page_deletable(self, message: Deletable) -> None:
        chosen = message.entries
        names = [f"{store.short_id(e.run)}  {exactly(e.started_s)}  {e.name}  {e.state}" for e in chosen]
        title = f"Delete {plural(len(chosen), 'run')}?"
        if await self.app.push_screen_wait(Question(title, names, f"{_freed(chosen)} on disk. This cannot be taken back.")):
            self._delete([entry.run for entry in chosen])

    @work(thread=True, group="delete")
    def _delete(self, runs: Sequence[str]) -> None:
        """Delete runs; one that must not be by now, or cannot be deleted, ends it with a sentence."""
        done = 0
        try:
            for run in runs:
                deleting.delete(self.desk.root / run)
                done += 1
        except TuilabError as problem:
            self.post_message(self.Done(f"deleted {done} of {plural(len(runs), 'run')}: {problem}", is_problem=True))
        else:
            self.post_message(self.Done(f"deleted {plural(done, 'run')}", is_problem=False))

    def action_stop(self) -> None:
        entry = self.runs.chosen
        if entry is None:
            return
        self._stop(entry.run, at_once=entry.run in self._stopping)
        self._stopping.add(entry.run)

    @work(thread=True, group="stop")
    def _stop(self, run: str, *, at_once: bool) -> None:
        try:
            self.post_message(self.Done(launch.stop(self.desk.root / run, at_once=at_once), is_problem=False))
        except TuilabError as problem:
            self.post_message(self.Done(str(problem), is_problem=True))

    def on_history_page_done(self, message: Done) -> None:
        self.lab.tell(message.text, is_problem=message.is_problem)
        self._list()


def _freed(entries: Sequence[Entry]) -> str:
    """Return the bytes of some runs in words, as far as they are known."""
    known = [entry.bytes_total for entry in entries if entry.bytes_total is not None]
    if not known:
        return "n/a"
    return size(sum(known)) if len(known) == len(entries) else f"more than {size(sum(known))}"
