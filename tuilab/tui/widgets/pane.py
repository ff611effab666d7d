"""A part of the Run screen: a frame with a title, that can be focused, scrolled and maximised."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tuilab.tui.widgets.drawing import Drawing
from tuilab.tui.widgets.search import SEARCHES, Searched

if TYPE_CHECKING:
    from tuilab.tui.state.following import Shown
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
        self.border_title = Content(title)

    def show(self, run: "Shown", view: "View") -> None:
        """Show the run as it is now."""

    def as_text(self) -> str:
        """Return what it shows, to be copied."""
        return "\n".join(drawing.as_text() for drawing in self.query(Drawing))


class DrawingPane(Pane):
    """A pane with one drawing in it."""

    DEFAULT_CSS = """
    DrawingPane { overflow: hidden; }
    """

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.drawing = Drawing()

    def compose(self) -> ComposeResult:
        yield self.drawing


class TextPane(Pane, Searched):
    """A pane of lines of text."""

    BINDINGS = SEARCHES
    PLACE: ClassVar[str] = "text"
    is_followed: ClassVar[bool] = False  # stay at the end while it grows, unless the user has scrolled away

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._text = Static(Content(""))
        self._shown: list[Content] | None = None
        self._is_left = False  # by the user, who has scrolled away from its end

    def compose(self) -> ComposeResult:
        yield self._text

    def put(self, lines: list[Content]) -> None:
        """Show these lines, if they are others than before."""
        if lines != self._shown:
            self._shown = lines
            self.show_found()

    def lines_to_search(self) -> Sequence[Content]:
        return self._shown or ()

    def as_text(self) -> str:
        return "\n".join(line.plain for line in self.lines_to_search())

    def show_found(self) -> None:
        self._text.update(Content("\n").join(map(self.marked, self.lines_to_search())))

    def go_to_line(self, number: int) -> None:
        width = max(self._text.size.width, 1)
        above = sum(max(len(line.wrap(width)), 1) for line in self.lines_to_search()[:number])
        self.scroll_to(y=max(above - 1, 0), animate=False, force=True)

    def watch_virtual_size(self) -> None:
        """Follow when the lines have been laid out, not when they are given: which comes first is not certain."""
        self._follow()

    def on_resize(self) -> None:
        self._follow()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Note whether the end is shown; that there are more lines since does not mean that the user has left it."""
        super().watch_scroll_y(old_value, new_value)
        self._is_left = new_value < self.max_scroll_y

    def _follow(self) -> None:
        if self.is_followed and not self._is_left:
            self.call_next(self.scroll_end, animate=False, immediate=True)
