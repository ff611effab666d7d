"""Asks what the user expects before a scenario runs here for the first time: an answer that one had to guess is remembered."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Input, Static

from tuilab.tui.keys import bindings
from tuilab.tui.looks.reading import inline
from tuilab.tui.state.draft import GUESS, Draft
from tuilab.tui.widgets.dialog import Dialog
from tuilab.tui.widgets.keybar import answers
from tuilab.tui.widgets.paragraph import Paragraph
from tuilab.wrapping import flow


class Prediction(Dialog[bool]):
    """Puts the answer into the draft; says whether to run it."""

    PLACE: ClassVar[str] = "prediction"
    BINDINGS = bindings("prediction")

    def __init__(self, draft: Draft) -> None:
        super().__init__("What do you expect?")
        self._draft, self._before = draft, draft.text(GUESS)

    def compose_box(self) -> ComposeResult:
        yield Paragraph(inline(flow(self._draft.scenario.sections["Predict"])[:600]))
        line = Input(self._draft.text(GUESS), placeholder="a number; empty: no prediction", compact=True)
        line.cursor_blink = False
        yield line
        yield Static(id="problem")
        yield Static(answers(self.PLACE))

    def on_input_changed(self, event: Input.Changed) -> None:
        self._draft.type(GUESS, event.value)
        self.tell_problem(self._draft.problem(GUESS))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if not self._draft.problem(GUESS):
            self.dismiss(True)

    def action_give_up(self) -> None:
        self._draft.type(GUESS, self._before)
        self.dismiss(False)
