"""The lines above and between the parts of a screen: the heading, and lines that are hidden while they have nothing to say."""

from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

_LEAST = (
    12  # cells for the left text of a heading; where there are fewer, it has the line for itself
)


class InfoLine(Static):
    """Words that are shown while there are any; a short line is cut at the end, another one takes the lines that it needs."""

    DEFAULT_CSS = """
    InfoLine { height: auto; display: none; background: $surface; padding: 0 1; }
    InfoLine.has-words { display: block; }
    InfoLine.is-short { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *, is_short: bool = False) -> None:
        super().__init__(Content(""))
        self._words = Content("")
        self.set_class(is_short, "is-short")

    def show(self, words: Content) -> None:
        """Show these words, or nothing."""
        if words != self._words:
            self._words = words
            self.set_class(bool(words), "has-words")
            self.update(words, layout=not self.has_class("is-short"))


class Heading(Widget):
    """Two texts on the first line of a screen; the left one gives way, and has the line for itself where it is very short."""

    DEFAULT_CSS = """
    Heading { height: 1; width: 100%; background: $panel; padding: 0 1; }
    """

    def __init__(
        self,
        left: Content | None = None,
        right: Content | None = None,
        *,
        badge: Content | None = None,
    ) -> None:
        super().__init__()
        self._badge = badge or Content("")  # at the right, and never left out
        self._left = left or Content("")
        self._right = right or Content("")

    def show(self, left: Content, right: Content | None = None) -> None:
        """Show these texts."""
        right = self._right if right is None else right
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def render(self) -> RenderResult:
        if not self._badge:
            return self._texts(self.content_size.width)
        width = max(self.content_size.width - self._badge.cell_length - 2, 0)
        texts = self._texts(width)
        return Content("").join(
            [texts, Content(" " * (width + 2 - texts.cell_length)), self._badge]
        )

    def _texts(self, width: int) -> Content:
        right = self._right.truncate(max(width * 2 // 3, 0), ellipsis=True)
        room = width - right.cell_length - 2
        if room < _LEAST:
            return self._left.truncate(width, ellipsis=True)
        left = self._left.truncate(room, ellipsis=True)
        return Content("").join(
            [left, Content(" " * (width - left.cell_length - right.cell_length)), right]
        )
