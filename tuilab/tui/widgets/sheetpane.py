"""A framed part of a screen that can have the focus, and then be zoomed."""

from textual.containers import Vertical
from textual.content import Content

from tuilab.tui.widgets.sheet import Sheet


class SheetPane(Vertical, can_focus=True):
    """A title around a sheet; it scrolls with what it stands in."""

    DEFAULT_CSS = """
    SheetPane {
        height: auto; border: round $border-blurred; padding: 0 1; border-title-color: $foreground; border-title-style: bold;
        &:focus { border: round $primary; border-title-color: $text-primary; }
    }
    """

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__(Sheet(), id=id)
        self.border_title = Content(title)

    @property
    def sheet(self) -> Sheet:
        return self.query_one(Sheet)
