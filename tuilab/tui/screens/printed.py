"""What the screens have in common that show what a command prints."""

from textual.app import ComposeResult
from textual.content import Content

from tuilab.drawings.glyphs import Style
from tuilab.text import is_utf8_terminal
from tuilab.tui.looks.marks import plain
from tuilab.tui.screens.page import Page
from tuilab.tui.widgets.printout import Printout
from tuilab.tui.widgets.search import SearchedLines


class PrintedPage(Page):
    """One text; what it says is worked out beside the interface, and shown as it comes."""

    def compose_body(self) -> ComposeResult:
        self.printout = Printout()
        yield self.printout

    def on_mount(self) -> None:
        self.printout.focus()
        self.say("")

    @property
    def style(self) -> Style:
        """How the command would print in a terminal with colours."""
        return Style(is_utf8=is_utf8_terminal(), has_colour=True)

    def say(self, words: str) -> None:
        """Say in the heading how it stands."""
        self.heading.show(Content.assemble(("tuilab", "bold"), f"  {self.PLACE}  ", plain(words, 200, "$text-muted")))

    def on_searched_lines_found(self, event: SearchedLines.Found) -> None:
        self.keybar.note(plain(event.said, 80, "$text-accent"))

    def action_copy_all(self) -> None:
        """Copy the whole text."""
        self.lab.copy(self.printout.as_text())

    def action_show_all(self) -> None:
        """Show the whole text in the pager."""
        self.show_in_pager(self.printout.as_text())
