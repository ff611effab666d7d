"""A paragraph that is wrapped as its language requires: Chinese after any character."""

from textual.app import RenderResult
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tuilab.tui.looks.lesson_layout import wrap_lines


class Paragraph(Widget):
    """Text that flows."""

    DEFAULT_CSS = "Paragraph { height: auto; width: 100%; }"

    def __init__(self, text: Content) -> None:
        super().__init__()
        self._text = text

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(wrap_lines(self._text, width))

    def render(self) -> RenderResult:
        return Content("\n").join(wrap_lines(self._text, self.content_size.width))
