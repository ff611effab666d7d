"""A part of the Run screen: a frame with a title, that can be focused, scrolled and maximised."""

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
    """A pane; those with lines of text give them in `lines`."""

    DEFAULT_CSS = """
    Pane {
        border: round $border-blurred; padding: 0 1; height: 1fr; scrollbar-size: 1 1; background: $background;
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
        self._found = ""  # what there is to say of a search
        self._said: object = None

    def show(self, run: "RunSource", view: "View") -> None:
        """Show the run as it is now."""

    def entitle(self, title: Content | None) -> None:
        """Have another title in the frame above: to have the same again would paint the pane again."""
        if title != self._title:
            self.border_title = self._title = title

    def note(self, words: Content) -> None:
        """Say something in the frame below, behind how many lines there are that have no room."""
        self._note = words
        below = round(
            self.virtual_size.height - self.scrollable_content_region.height - self.scroll_y
        )
        more = (
            Content.styled(f"+{below} ↓", "$text-accent")
            if below > 0 and self.allow_vertical_scroll
            else Content("")
        )
        found = Content.styled(self._found, "$text-accent")
        said = Content("  ").join([part for part in (found, more, words) if part])
        if (
            key := (said.plain, *said.spans)
        ) != self._said:  # to say the same again would paint the pane again
            self._said = key
            self.border_subtitle = said

    def watch_virtual_size(self) -> None:
        self.note(self._note)

    def on_resize(self) -> None:
        self.note(self._note)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.note(self._note)

    def as_text(self) -> str:
        """Return what it shows, to be copied."""
        return "\n".join(drawing.as_text() for drawing in self.query(Drawing))


class DrawingPane(Pane):
    """A pane with one drawing in it, scrolled where it has no room for the rows that the drawing needs."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.drawing = Drawing()

    def compose(self) -> ComposeResult:
        yield self.drawing

    def need(self, rows: int) -> None:
        """Have at least so many rows to draw in."""
        self.drawing.styles.min_height = rows


class TextPane(Pane, Searched):
    """A pane of lines of text."""

    BINDINGS = SEARCHES
    PLACE: ClassVar[str] = "text"
    is_followed: ClassVar[bool] = (
        False  # stay at the end while it grows, unless the user has scrolled away
    )

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.called = f"the pane {title}"
        self._text = Static()
        self._width = 0  # for which its lines are broken
        self._shown: list[Content] = []
        self._heights: dict[int, int] = {}  # by width, of what is shown
        self._is_left = False  # by the user, who has scrolled away from its end

    def compose(self) -> ComposeResult:
        yield self._text

    def put(self, lines: list[Content]) -> None:
        """Show these lines, if they are others than before."""
        if lines != self._shown:
            self._shown = lines
            self._heights.clear()
            self.show_found()

    def lines_at(self, width: int) -> int:
        """Return how many lines there are at a width."""
        width = max(width, 1)  # a terminal may be narrower than a frame
        if width not in self._heights:  # asked for with each picture
            self._heights[width] = laid_out(self._shown, width).get_height({}, width)
        return self._heights[width]

    def lines_to_search(self) -> Sequence[Content]:
        return self._shown or ()

    def as_text(self) -> str:
        return "\n".join(line.plain for line in self.lines_to_search())

    def tell_found(self, said: str) -> None:
        self._found = said
        self.note(self._note)

    def show_found(self) -> None:
        self._width = self.scrollable_content_region.width
        self._text.update(laid_out(map(self.marked, self.lines_to_search()), self._width))

    def go_to_line(self, number: int) -> None:
        width = max(self._text.size.width, 1)
        above = (
            laid_out(self.lines_to_search()[:number], width).get_height({}, width) if number else 0
        )
        self.scroll_to(y=max(above - 1, 0), animate=False, force=True)

    def watch_virtual_size(self) -> None:
        """Follow when the lines have been laid out, not when they are given: which comes first is not certain."""
        super().watch_virtual_size()
        self._follow()

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._width:
            self.show_found()
        self._follow()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Note whether the end is shown; that there are more lines since does not mean that the user has left it."""
        super().watch_scroll_y(old_value, new_value)
        self._is_left = new_value < self.max_scroll_y

    def _follow(self) -> None:
        if self.is_followed and not self._is_left:
            self.call_next(self.scroll_end, animate=False, immediate=True)


def laid_out(lines: Iterable[Content], width: int) -> Content:
    """Return lines as a text; a long one with units is broken here, where none ends before one, the others by Textual."""
    broken = (
        wrap_lines(line, width)
        if line.cell_length > width > 0 and has_units(line.plain)
        else [line]
        for line in lines
    )
    return Content("\n").join(part for parts in broken for part in parts)
