"""The table of runs. There may be thousands; only the visible ones are drawn."""

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
    """Lines of runs below a head that does not scroll. The screen has the keys and calls `move`."""

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
        """The run at the cursor was double-clicked."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: Sequence[str] = ()
        self._entries: Mapping[str, RunEntry] = {}
        self._notes: Mapping[str, Notes] = {}
        self._cursor = 0
        self._now_s = 0.0
        self._empty_words = ""  # shown in the place of an empty list
        self._sort_column = ""
        self.marked: dict[str, None] = {}  # runs, in the order in which they were marked

    # ---- the runs in the table

    def show(
        self,
        runs: Sequence[str],
        entries: Mapping[str, RunEntry],
        notes: Mapping[str, Notes],
        now_s: float,
        empty_words: str = "",
        sort_column: str = "",
    ) -> None:
        """Show these runs, with the column by which they are sorted even if the table is narrow.

        The cursor stays on its run if that run is still in the list.
        """
        old_run = self._chosen_run
        self._runs = runs
        self._entries = entries
        self._notes = notes
        self._now_s = now_s
        self._empty_words = empty_words
        self._sort_column = sort_column
        self.virtual_size = Size(0, len(runs) + 1)
        if self._chosen_run != old_run and old_run in entries and old_run in runs:
            self._cursor = runs.index(old_run)
        self._cursor = min(self._cursor, max(len(runs) - 1, 0))
        self.scroll_to_cursor()
        self.refresh()
        if self._chosen_run != old_run:
            self.post_message(self.Moved())

    def refresh_changed(self, runs: Container[str], now_s: float) -> None:
        """Draw the visible lines of these runs again: more of them was read."""
        self._now_s = now_s
        first = self.scroll_offset.y
        for place, run in enumerate(self.in_view):
            if run in runs:
                self.refresh_line(first + place + 1)

    @property
    def chosen(self) -> RunEntry | None:
        """The run at the cursor; None in an empty list."""
        return self._entries.get(self._chosen_run)

    @property
    def acted_on(self) -> list[RunEntry]:
        """The marked runs; without marks, the run at the cursor."""
        marked = [self._entries[run] for run in self.marked if run in self._entries]
        if marked:
            return marked
        chosen = self.chosen
        return [chosen] if chosen else []

    @property
    def marks_hidden(self) -> int:
        """The number of marked runs that the filter hides."""
        if not self.marked:
            return 0
        return len(self.marked.keys() - set(self._runs))

    @property
    def in_view(self) -> Sequence[str]:
        """The runs that are visible now."""
        first = self.scroll_offset.y
        return self._runs[first : first + max(self.size.height - 1, 0)]

    @property
    def _chosen_run(self) -> str:
        """The name of the run at the cursor; empty in an empty list."""
        if self._cursor >= len(self._runs):
            return ""
        return self._runs[self._cursor]

    # ---- the cursor and the marks

    @property
    def cursor_region(self) -> Region:
        return Region(0, self._cursor, 1, 2)  # one line more: the head covers a line

    def move(self, rows: int) -> None:
        """Move the cursor by some rows, at most to the first or the last run."""
        self._put_cursor(self._cursor + rows)

    @property
    def page(self) -> int:
        """The number of runs by which a page key moves the cursor."""
        return max(self.size.height - 2, 1)

    def toggle_mark(self) -> None:
        """Mark or unmark the run at the cursor, and move to the next run."""
        if self.chosen is None:
            return
        run = self.chosen.run
        if run in self.marked:
            del self.marked[run]
        else:
            self.marked[run] = None
        self.refresh()
        self.move(1)

    def unmark(self, runs: Iterable[str]) -> None:
        """Remove the marks of these runs."""
        for run in runs:
            self.marked.pop(run, None)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked run. A double click on the run at the cursor opens it."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y < 1:
            return
        place = self.scroll_offset.y + offset.y - 1
        if place == self._cursor and event.chain == 2:
            self.post_message(self.Opened())
        elif place < len(self._runs):
            self._put_cursor(place)

    def _put_cursor(self, place: int) -> None:
        """Move the cursor to a place, at most to the last run; if that is new, post `Moved`."""
        place = min(max(place, 0), max(len(self._runs) - 1, 0))
        if place == self._cursor:
            return
        self.refresh_line(self._cursor + 1)
        self.refresh_line(place + 1)
        self._cursor = place
        self.scroll_to_cursor()
        self.post_message(self.Moved())

    # ---- drawing

    def render_line(self, y: int) -> Strip:
        """Return the head, the line of a run, or a line below the runs."""
        width = self.scrollable_content_region.width
        if y == 0:
            head = runline.head(width, self._sort_column)
            return self._strip(head, "runlist--head", width)
        place = self.scroll_offset.y + y - 1
        if place >= len(self._runs):
            return self._strip(self._blank_line(y, width), "", width)
        entry = self._entries[self._runs[place]]
        line = runline.line(
            entry,
            self._notes.get(entry.run, _NO_NOTES),
            width,
            self._now_s,
            is_marked=entry.run in self.marked,
            sort_column=self._sort_column,
        )
        component = "runlist--cursor" if place == self._cursor else ""
        return self._strip(line, component, width)

    def _blank_line(self, y: int, width: int) -> Content:
        """Return a line below the runs. In an empty list, the lines say why it is empty."""
        if self._runs:
            return Content("")
        lines = [Content(""), *Content(self._empty_words).wrap(max(width - 4, 8))]
        if y > len(lines):
            return Content("")
        return Content.assemble("  ", lines[y - 1])

    def _strip(self, content: Content, component: str, width: int) -> Strip:
        style = self.visual_style
        if component:
            style += self.get_visual_style(component)
        return strip_of(self, content, width, style).crop(0, width)
