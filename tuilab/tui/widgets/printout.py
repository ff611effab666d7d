"""What a command prints, on a screen: laid out for its width, searched and copied."""

from collections.abc import Callable
from typing import ClassVar

from textual.content import Content

from tuilab.tui.looks.sgr import coloured
from tuilab.tui.widgets.search import SearchedLines


class Printout(SearchedLines):
    """Lines with the colours of a terminal, which become those of the theme."""

    PLACE: ClassVar[str] = "printed text"
    DEFAULT_CSS = """
    Printout { padding: 0 0 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="printout")
        self._print: Callable[[int], str] = lambda width: ""

    def show(self, printed: Callable[[int], str]) -> None:
        """Show what is printed at a width."""
        self._print = printed
        self.renew()

    def lay_out(self, width: int) -> list[Content]:
        return list(coloured(self._print(width - 1).split("\n")))

    def as_text(self) -> str:
        """Return all of it, to be copied."""
        return "\n".join(line.plain for line in self._lines)
