"""Asks what the user expects before a scenario runs here for the first time: an answer that one had to guess is remembered."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from tuilab.catalogue.translation import translated
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import plain
from tuilab.tui.looks.reading import heading, inline
from tuilab.tui.state.draft import GUESS, Draft
from tuilab.tui.terminal.textual_parts import TextualModal
from tuilab.tui.widgets.keybar import answers
from tuilab.tui.widgets.paragraph import Paragraph
from tuilab.wrapping import flow


class Prediction(TextualModal[bool]):
    """Puts the answer into the draft; says whether to run it."""

    PLACE: ClassVar[str] = "prediction"
    BINDINGS = bindings("prediction")
    DEFAULT_CSS = """
    Prediction { align: center middle; background: $background 60%; }
    Prediction > Vertical {
        width: 72; max-width: 94%; height: auto; max-height: 90%; border: round $primary; background: $surface; padding: 0 1;
        border-title-color: $text-accent;
    }
    Prediction Static { width: 100%; height: auto; }
    Prediction Input, Prediction Input:focus { height: 1; border: none; padding: 0 1; margin: 1 0; background: $panel; }
    """

    def __init__(self, draft: Draft) -> None:
        super().__init__()
        self._draft = draft

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = heading("What do you expect?")
        with box:
            yield Paragraph(inline(flow(translated(self._draft.scenario).sections["Predict"])[:600]))
            line = Input(self._draft.text(GUESS), placeholder="a number; empty: no prediction", compact=True)
            line.cursor_blink = False
            yield line
            yield Static(id="problem")
            yield Static(answers("prediction"))

    def on_input_changed(self, event: Input.Changed) -> None:
        self._draft.type(GUESS, event.value)
        problem = self._draft.problem(GUESS)
        self.query_one("#problem", Static).update(plain(f"✗ {problem}", 300, "$text-error") if problem else Content(""))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if not self._draft.problem(GUESS):
            self.dismiss(True)

    def action_give_up(self) -> None:
        self.dismiss(False)
