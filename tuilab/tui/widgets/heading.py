"""The first line of every screen: where one is, and on what machine."""

from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget


class Heading(Widget):
    """Two texts on one line; the left one gives way, and has the line for itself where it is very short."""

    DEFAULT_CSS = """
    Heading { height: 1; width: 100%; background: $panel; padding: 0 1; }
    """

    def __init__(self, left: Content | None = None, right: Content | None = None, *, badge: Content | None = None) -> None:
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
        return Content("").join([texts, Content(" " * (width + 2 - texts.cell_length)), self._badge])

    def _texts(self, width: int) -> Content:
        right = self._right.truncate(max(width * 2 // 3, 0), ellipsis=True)
        room = width - right.cell_length - 2
        if room < 12:
            return self._left.truncate(width, ellipsis=True)
        left = self._left.truncate(room, ellipsis=True)
        return Content("").join([left, Content(" " * (width - left.cell_length - right.cell_length)), right])
