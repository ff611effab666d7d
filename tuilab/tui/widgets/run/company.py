"""The line of the Run screen that says who else computes beside the run; not there while nobody does."""

from textual.content import Content
from textual.widgets import Static

from tuilab.tui.looks.marks import plain


class CompanyLine(Static):
    """One line above the panes."""

    DEFAULT_CSS = """
    CompanyLine { height: 1; display: none; background: $surface; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    CompanyLine.has-company { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(Content(""))
        self._words = ""

    def tell(self, words: str) -> None:
        """Tell who is there, or that nobody is."""
        if words != self._words:
            self._words = words
            self.set_class(bool(words), "has-company")
            self.update(
                Content.assemble(("also running: ", "bold $text-warning"), plain(words, 300, "$text-warning")), layout=False
            )
