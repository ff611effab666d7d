"""A part of the Run screen: a frame with a title that can be focused, scrolled and maximised."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tuilab.text.wrapping import has_units
from tuilab.tui.looks.lesson_layout import wrap_lines
from tuilab.tui.widgets.drawing import Drawing
from tuilab.tui.widgets.search import SEARCHES, Searched

if TYPE_CHECKING:
    from tuilab.tui.state.run_source import RunSource
    from tuilab.tui.state.view import View


class Pane(VerticalScroll):
    """A pane. Its frame has a title, and at the bottom a note."""

    DEFAULT_CSS = """
    Pane {
        border: round $border-blurred; padding: 0 1; height: 1fr; scrollbar-size: 1 1;
        background: $background;
        border-title-color: $foreground 70%; border-subtitle-color: $foreground 70%;
    }
    Pane:focus, Pane:focus-within { border: round $primary; }
    Pane > Static { width: 100%; height: auto; }
    """
    ALLOW_MAXIMIZE = True
    can_focus = True

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title: Content | None = Content(title)
        self.border_title = self._title
        self._note = Content("")
        self._match_words = ""  # of a search
        self._subtitle_key: object = None  # the text and the styles of the frame's bottom

    def show(self, run: "RunSource", view: "View") -> None:
        """Show the current state of the run."""

    def entitle(self, title: Content | None) -> None:
        """Set the title, unless it is the same: setting it would draw the pane again."""
        if title != self._title:
            self._title = title
            self.border_title = title

    def note(self, words: Content) -> None:
        """Show words at the bottom of the frame, behind the matches and the number of hidden lines.

        Setting the same again would draw the pane again.
        """
        self._note = words
        match = Content.styled(self._match_words, "$text-accent")
        parts = [match, self._hidden_lines(), words]
        subtitle = Content("  ").join([part for part in parts if part])
        key = (subtitle.plain, *subtitle.spans)
        if key != self._subtitle_key:
            self._subtitle_key = key
            self.border_subtitle = subtitle

    def _hidden_lines(self) -> Content:
        """Return how many lines are below the visible ones."""
        region_height = self.scrollable_content_region.height
        hidden = round(self.virtual_size.height - region_height - self.scroll_y)
        if hidden <= 0 or not self.allow_vertical_scroll:
            return Content("")
        return Content.styled(f"+{hidden} ↓", "$text-accent")

    def watch_virtual_size(self) -> None:
        self.note(self._note)

    def on_resize(self) -> None:
        self.note(self._note)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.note(self._note)

    def as_text(self) -> str:
        """Return the content of the pane as text, to be copied."""
        return "\n".join(drawing.as_text() for drawing in self.query(Drawing))


class DrawingPane(Pane):
    """A pane with one drawing. It scrolls if it is smaller than the drawing needs."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.drawing = Drawing()

    def compose(self) -> ComposeResult:
        yield self.drawing

    def need(self, rows: int) -> None:
        """Make the drawing at least so many rows high."""
        self.drawing.styles.min_height = rows


class TextPane(Pane, Searched):
    """A pane of lines of text."""

    BINDINGS = SEARCHES
    PLACE: ClassVar[str] = "text"
    # Whether the end stays visible while the text grows, unless the user has scrolled away.
    is_followed: ClassVar[bool] = False

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.search_title = f"the pane {title}"
        self._text = Static()
        self._width = 0  # for which the text was laid out
        self._shown_lines: list[Content] = []
        self._heights: dict[int, int] = {}  # of the text, by width
        self._is_scrolled_away = False  # from the end, by the user

    def compose(self) -> ComposeResult:
        yield self._text

    def put(self, lines: list[Content]) -> None:
        """Show these lines, unless they are shown already."""
        if lines != self._shown_lines:
            self._shown_lines = lines
            self._heights.clear()
            self.redraw_matches()

    def lines_at(self, width: int) -> int:
        """Return the number of lines at a width."""
        width = max(width, 1)  # a terminal may be narrower than a frame
        # Kept, because it is asked for with each picture.
        if width not in self._heights:
            text = laid_out(self._shown_lines, width)
            self._heights[width] = text.get_height({}, width)
        return self._heights[width]

    def lines_to_search(self) -> Sequence[Content]:
        return self._shown_lines

    def as_text(self) -> str:
        return "\n".join(line.plain for line in self.lines_to_search())

    def show_match(self, words: str) -> None:
        self._match_words = words
        self.note(self._note)

    def redraw_matches(self) -> None:
        self._width = self.scrollable_content_region.width
        lines = [self.mark_matches(line) for line in self.lines_to_search()]
        self._text.update(laid_out(lines, self._width))

    def go_to_line(self, number: int) -> None:
        """Scroll to a line, below the rows into which the lines before it are wrapped."""
        width = max(self._text.size.width, 1)
        rows_above = 0
        if number:
            text_above = laid_out(self.lines_to_search()[:number], width)
            rows_above = text_above.get_height({}, width)
        self.scroll_to(y=max(rows_above - 1, 0), animate=False, force=True)

    def watch_virtual_size(self) -> None:
        """Follow the end once the lines are laid out, which may be before or after `put`."""
        super().watch_virtual_size()
        self._follow()

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._width:
            self.redraw_matches()
        self._follow()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Note whether the user has scrolled away. New lines below do not count as that."""
        super().watch_scroll_y(old_value, new_value)
        self._is_scrolled_away = new_value < self.max_scroll_y

    def _follow(self) -> None:
        if self.is_followed and not self._is_scrolled_away:
            self.call_next(self.scroll_end, animate=False, immediate=True)


def laid_out(lines: Iterable[Content], width: int) -> Content:
    """Return lines as one text.

    A long line with units is wrapped here, so that no row ends before a unit. Textual wraps the
    other lines.
    """
    rows = []
    for line in lines:
        if line.cell_length > width > 0 and has_units(line.plain):
            rows += wrap_lines(line, width)
        else:
            rows.append(line)
    return Content("\n").join(rows)
