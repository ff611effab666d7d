"""The table of runs: thousands of them, of which only the visible ones are ever drawn."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from tuilab.runs.entry import RunEntry
from tuilab.runs.notes import Notes
from tuilab.tui.widgets.history import runline
from tuilab.tui.widgets.lines import Cursored, strip_of

_NO_NOTES = Notes()


class RunList(Cursored, can_focus=True, inherit_bindings=False):
    """Lines of runs below a head that stays; the screen has the keys and calls `move`."""

    DEFAULT_CSS = """
    RunList {
        height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; background: $background;
        & > .runlist--cursor { background: $primary 22%; }
        & > .runlist--head { background: $surface; }
    }
    RunList:blur > .runlist--cursor { background: $primary 15%; }
    RunList:light > .runlist--cursor { background: $primary 14%; }
    RunList:ansi {
        & > .runlist--cursor { background: ansi_bright_black; }
        & > .runlist--head { text-style: underline; background: ansi_default; }
    }
    RunList:nocolor > .runlist--cursor { text-style: bold underline; }
    RunList:ansi:light > .runlist--cursor { background: ansi_white; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"runlist--cursor", "runlist--head"}

    class Moved(Message):
        """The cursor is on another run."""

    class Opened(Message):
        """A run was clicked that the cursor was on."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: Sequence[str] = ()
        self._entries: Mapping[str, RunEntry] = {}
        self._notes: Mapping[str, Notes] = {}
        self._cursor = 0
        self._now_s = 0.0
        self._empty = self._wanted = ""
        self.marked: dict[str, None] = {}  # runs, in the order in which they were marked

    # ---- what is shown

    def show(
        self,
        runs: Sequence[str],
        entries: Mapping[str, RunEntry],
        notes: Mapping[str, Notes],
        now_s: float,
        empty: str = "",
        wanted: str = "",
    ) -> None:
        """Show these runs, of which `entries` and `notes` tell, with a column that is wanted whatever room there is.

        The cursor stays on its run, if that is still there.
        """
        old = self._chosen_run
        self._runs, self._entries, self._notes, self._now_s, self._empty = (
            runs,
            entries,
            notes,
            now_s,
            empty,
        )
        self._wanted = wanted
        self.virtual_size = Size(0, len(runs) + 1)
        if self._chosen_run != old and old in entries and old in runs:
            self._cursor = runs.index(old)
        self._cursor = min(self._cursor, max(len(runs) - 1, 0))
        self.scroll_to_cursor()
        self.refresh()
        if self._chosen_run != old:
            self.post_message(self.Moved())

    def refresh_changed(self, runs: Container[str], now_s: float) -> None:
        """Draw again what is known better by now of these runs."""
        self._now_s = now_s
        first = self.scroll_offset.y
        for at, run in enumerate(self.in_view):
            if run in runs:
                self.refresh_line(first + at + 1)

    @property
    def chosen(self) -> RunEntry | None:
        """The run that the cursor is on."""
        return self._entries.get(self._chosen_run)

    @property
    def acted_on(self) -> list[RunEntry]:
        """The marked runs, else the one that the cursor is on."""
        marked = [self._entries[run] for run in self.marked if run in self._entries]
        return marked or ([self.chosen] if self.chosen else [])

    @property
    def marks_hidden(self) -> int:
        """How many marked runs are not in the list, which a filter has narrowed."""
        return len(self.marked.keys() - set(self._runs)) if self.marked else 0

    @property
    def in_view(self) -> Sequence[str]:
        """The runs that can be seen now."""
        first = self.scroll_offset.y
        return self._runs[first : first + max(self.size.height - 1, 0)]

    @property
    def _chosen_run(self) -> str:
        return self._runs[self._cursor] if self._cursor < len(self._runs) else ""

    # ---- the cursor and the marks

    @property
    def cursor_region(self) -> Region:
        return Region(0, self._cursor, 1, 2)  # and the head, which covers a line

    def move(self, rows: int) -> None:
        """Move the cursor, at most to the first or the last run."""
        self._put_cursor(self._cursor + rows)

    @property
    def page(self) -> int:
        """How many runs a page has."""
        return max(self.size.height - 2, 1)

    def toggle_mark(self) -> None:
        """Mark the run or take its mark away, and go on to the next."""
        if self.chosen is not None:
            if self.chosen.run in self.marked:
                del self.marked[self.chosen.run]
            else:
                self.marked[self.chosen.run] = None
            self.refresh()
            self.move(1)

    def unmark(self, runs: Iterable[str]) -> None:
        """Take the marks of runs away."""
        for run in runs:
            self.marked.pop(run, None)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is None or place.y < 1:
            return
        at = self.scroll_offset.y + place.y - 1
        if at == self._cursor and event.chain == 2:
            self.post_message(self.Opened())
        elif at < len(self._runs):
            self._put_cursor(at)

    def _put_cursor(self, at: int) -> None:
        at = min(max(at, 0), max(len(self._runs) - 1, 0))
        if at != self._cursor:
            self.refresh_line(self._cursor + 1)
            self.refresh_line(at + 1)
            self._cursor = at
            self.scroll_to_cursor()
            self.post_message(self.Moved())

    # ---- how it is drawn

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if y == 0:
            return self._strip(runline.head(width, self._wanted), "runlist--head", width)
        at = self.scroll_offset.y + y - 1
        if at >= len(self._runs):
            note = (
                [] if self._runs else [Content(""), *Content(self._empty).wrap(max(width - 4, 8))]
            )
            return self._strip(
                Content.assemble("  ", note[y - 1]) if y <= len(note) else Content(""), "", width
            )
        entry = self._entries[self._runs[at]]
        notes = self._notes.get(entry.run, _NO_NOTES)
        is_marked = entry.run in self.marked
        told = runline.line(
            entry, notes, width, self._now_s, is_marked=is_marked, wanted=self._wanted
        )
        return self._strip(told, "runlist--cursor" if at == self._cursor else "", width)

    def _strip(self, content: Content, look: str, width: int) -> Strip:
        style = self.visual_style + self.get_visual_style(look) if look else self.visual_style
        return strip_of(self, content, width, style).crop(0, width)
