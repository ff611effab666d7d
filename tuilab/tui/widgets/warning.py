"""A line of a screen that says what keeps runs from being recorded; not there while nothing does."""

from textual.content import Content
from textual.widgets import Static

from tuilab.tui.looks.marks import plain


class WarningLine(Static):
    """Above the panes, in as many lines as it takes: it ends with the next step."""

    DEFAULT_CSS = """
    WarningLine { height: auto; display: none; background: $surface; padding: 0 1; }
    WarningLine.is-needed { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(Content(""))
        self._words = ""

    def tell(self, words: str) -> None:
        """Tell what there is to be told, or nothing."""
        if words != self._words:
            self._words = words
            self.set_class(bool(words), "is-needed")
            self.update(plain(words, 600, "$text-error"))
