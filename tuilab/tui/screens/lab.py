"""The Lab screen: choose a scenario, read its lesson, fill in its form, run it."""

from textual.app import ComposeResult
from textual.widgets import Static

from tuilab.tui.keys import bindings
from tuilab.tui.marks import plain
from tuilab.tui.screens.page import Page


class LabPage(Page):
    """The catalogue on the left, what belongs to the chosen scenario on the right."""

    PLACE = "lab"
    BINDINGS = bindings("lab")

    def compose_body(self) -> ComposeResult:
        yield Static(plain("\n".join(scenario.id for scenario in self.desk.scenarios)))
