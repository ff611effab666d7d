"""The heading of a screen, and lines that are hidden while they are empty."""

from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

_GAP = 2  # cells between the texts of a heading
_MIN_LEFT = 12  # cells for its left text; with fewer, the right text is left out


class InfoLine(Static):
    """Words that are hidden while they are empty. They wrap; a short line is cut instead."""

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
        """Show these words. Empty words hide the line."""
        if words != self._words:
            self._words = words
            self.set_class(bool(words), "has-words")
            self.update(words, layout=not self.has_class("is-short"))


class Heading(Widget):
    """Two texts on the first line of a screen, and a badge at the right end.

    The texts are cut so that they fit. In a very short line, the right text is left out.
    """

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
        self._badge = badge or Content("")  # never cut or left out
        self._left = left or Content("")
        self._right = right or Content("")

    def show(self, left: Content, right: Content | None = None) -> None:
        """Show these texts. Without a right text, the old one stays."""
        if right is None:
            right = self._right
        if left != self._left or right != self._right:
            self._left = left
            self._right = right
            self.refresh()

    def render(self) -> RenderResult:
        """Return the texts, cut so that the badge behind them has room."""
        if not self._badge:
            return self._texts(self.content_size.width)
        width = max(self.content_size.width - self._badge.cell_length - _GAP, 0)
        texts = self._texts(width)
        space = Content(" " * (width + _GAP - texts.cell_length))
        return Content("").join([texts, space, self._badge])

    def _texts(self, width: int) -> Content:
        """Return both texts in a width. The right one gets at most two thirds, or is left out."""
        right = self._right.truncate(max(width * 2 // 3, 0), ellipsis=True)
        room = width - right.cell_length - _GAP
        if room < _MIN_LEFT:
            return self._left.truncate(width, ellipsis=True)
        left = self._left.truncate(room, ellipsis=True)
        space = Content(" " * (width - left.cell_length - right.cell_length))
        return Content("").join([left, space, right])
