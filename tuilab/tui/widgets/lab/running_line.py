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
    from tuilab.runs.entry import RunEntry


class GoingLine(Widget):
    """Not there while nothing runs."""

    DEFAULT_CSS = """
    GoingLine { height: 1; padding: 0 1; display: none; background: $surface; }
    GoingLine.has-runs { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: Sequence[RunEntry] = ()
        self._is_paused = False  # the queue that those are in which wait
        self._visited = 0  # times that the user went to one of them

    def show(self, runs: "Sequence[RunEntry]", *, is_paused: bool = False) -> None:
        """Show these runs, and whether the queue is paused."""
        if (runs, is_paused) != (self.runs, self._is_paused):
            self.runs, self._is_paused = runs, is_paused
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
        state = self._states()
        names = [Content.assemble(plain(run.name, 40, "bold"), (f" {short_id(run.run)}", "$text-muted")) for run in self.runs]
        if isinstance(self.screen.focused, Input):
            return Content.assemble(state, "  ", Content(", ").join(names)).truncate(self.size.width - 2, ellipsis=True)
        key = Content.assemble(
            "  ", ("a", "bold $text-accent"), (" opens it" if len(self.runs) == 1 else " opens each in turn", "dim")
        )
        told = Content.assemble(state, "  ", Content(", ").join(names))
        return Content("").join([told.truncate(max(self.size.width - 2 - key.cell_length, 8), ellipsis=True), key])

    def _states(self) -> Content:
        """Return how many run, and how many wait for their turn, which does not come while the queue is paused."""
        queued = sum(run.state == RunState.QUEUED for run in self.runs)
        running = len(self.runs) - queued
        counts = [
            *([Content.styled(f"● {plural(running, 'run')}", "$text-primary")] if running else []),
            *([Content.styled(f"○ {queued} queued", "$text-muted")] if queued else []),
        ]
        told = state_words(self.runs[0].state) if len(self.runs) == 1 else Content(", ").join(counts)
        is_stuck = queued and self._is_paused
        return Content.assemble(told, (", paused (press Q)", "bold $text-warning")) if is_stuck else told
