"""The line of the Lab screen that says what runs at this moment, and by which key one gets there."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from tuilab.record.states import RunState
from tuilab.text import plural
from tuilab.tui.looks.marks import plain, state_words

if TYPE_CHECKING:
    from tuilab.runs.ledger import Entry


class GoingLine(Widget):
    """Not there while nothing runs."""

    DEFAULT_CSS = """
    GoingLine { height: 1; padding: 0 1; display: none; background: $surface; }
    GoingLine.has-runs { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: Sequence[Entry] = ()
        self._visited = 0  # times that the user went to one of them

    def show(self, runs: "Sequence[Entry]") -> None:
        """Show these runs."""
        if runs != self.runs:
            self.runs = runs
            self.set_class(bool(runs), "has-runs")
            self.refresh()

    def next(self) -> str:
        """Return the run to go to; asked again, the next of them, and nothing where there is none."""
        self._visited += bool(self.runs)
        return self.runs[(self._visited - 1) % len(self.runs)].run if self.runs else ""

    def render(self) -> RenderResult:
        from tuilab.runs.store import short_id

        if not self.runs:
            return Content("")
        queued = sum(run.state == RunState.QUEUED for run in self.runs)
        count = len(self.runs) - queued
        state = (
            state_words(self.runs[0].state) if len(self.runs) == 1 else Content.styled(_counts(count, queued), "$text-primary")
        )
        names = [Content.assemble(plain(run.name, 40, "bold"), (f" {short_id(run.run)}", "$text-muted")) for run in self.runs]
        if isinstance(self.screen.focused, Input):
            return Content.assemble(state, "  ", Content(", ").join(names)).truncate(self.size.width - 2, ellipsis=True)
        key = Content.assemble(
            "  ", ("a", "bold $text-accent"), (" goes there" if len(self.runs) == 1 else " goes to each in turn", "dim")
        )
        told = Content.assemble(state, "  ", Content(", ").join(names))
        return Content("").join([told.truncate(max(self.size.width - 2 - key.cell_length, 8), ellipsis=True), key])


def _counts(running: int, queued: int) -> str:
    """Return how many run, and how many wait for their turn."""
    return "● " + ", ".join([plural(running, "run"), *([f"{queued} queued"] if queued else [])])
