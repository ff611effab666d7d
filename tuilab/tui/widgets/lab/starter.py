"""Runs what is chosen on the Lab screen: a prediction is asked for first, and a form that cannot be used is gone to."""

from typing import TYPE_CHECKING

from tuilab.errors import TuilabError
from tuilab.text.display import join
from tuilab.tui.navigator import Navigator
from tuilab.tui.state import drafts
from tuilab.tui.state.draft import Draft
from tuilab.tui.state.drafts import Drafts
from tuilab.tui.state.own.own_commands import TOPIC
from tuilab.tui.widgets.lab.columns import Columns

if TYPE_CHECKING:
    from tuilab.engine.messages import RunOrder
from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Input, Static

from tuilab.text.wrapping import flow
from tuilab.tui.keys import bindings
from tuilab.tui.looks.lesson_layout import inline
from tuilab.tui.state.draft import GUESS
from tuilab.tui.widgets.dialog import Dialog
from tuilab.tui.widgets.keybar import answers
from tuilab.tui.widgets.paragraph import Paragraph


class Starter:
    """One for the screen."""

    def __init__(self, columns: Columns, drafts: Drafts, lab: Navigator) -> None:
        self._columns = columns
        self._drafts = drafts
        self._lab = lab

    def start(self, draft: Draft | None, command: str) -> None:
        """Run a draft, or the topic under the cursor."""
        if draft and draft.command and not self._columns.bench.is_in_form:
            self._columns.show_part("form", "command")
        elif draft and self._drafts.has_to_ask(draft):
            self._ask(draft, command)
        elif draft and draft.problems:
            self._columns.show_part("form", next(iter(draft.problems)))
            names = [draft.fields[key].name for key in draft.problems]
            self._lab.tell(
                f"not started: {join(names)} {'has a wrong value' if len(names) == 1 else 'have wrong values'}"
            )
        elif self._columns.catalogue.row is not None:
            self._run(draft, command)

    def _ask(self, draft: Draft, command: str) -> None:
        def heed(wants_to_run: bool | None) -> None:
            if wants_to_run:
                self._drafts.note_asked(draft)
                self._columns.bench.refill()
                self.start(draft, command)

        self._columns.app.push_screen(PredictionDialog(draft), heed)

    def _run(self, draft: Draft | None, command: str) -> None:
        try:
            orders = self._orders(draft, command)
            if orders:
                self._lab.run_orders(orders)
        except TuilabError as problem:
            self._lab.tell(str(problem))

    def _orders(self, draft: Draft | None, command: str) -> "list[RunOrder]":
        if draft:
            return [drafts.order_of(draft, self._lab.desk)]
        row, catalogue = self._columns.catalogue.row, self._columns.catalogue
        if row and row.topic == TOPIC:
            self._lab.tell("choose one of your commands; its form runs it", is_problem=False)
            return []
        return (
            drafts.orders_of_topic(catalogue.of_topic(row.topic), command, self._lab.desk)
            if row
            else []
        )


class PredictionDialog(Dialog[bool]):
    """Puts the answer into the draft; says whether to run it."""

    PLACE: ClassVar[str] = "prediction"
    BINDINGS = bindings("prediction")

    def __init__(self, draft: Draft) -> None:
        super().__init__("What do you expect?")
        self._draft, self._before = draft, draft.text(GUESS)

    def compose_box(self) -> ComposeResult:
        yield Paragraph(inline(flow(self._draft.scenario.sections["Predict"])[:600]))
        line = Input(
            self._draft.text(GUESS), placeholder="a number; empty: no prediction", compact=True
        )
        line.cursor_blink = False
        yield line
        yield Static(id="problem")
        yield Static(answers(self.PLACE))

    def on_input_changed(self, event: Input.Changed) -> None:
        self._draft.type(GUESS, event.value)
        self.show_problem(self._draft.problem(GUESS))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if not self._draft.problem(GUESS):
            self.dismiss(True)

    def action_give_up(self) -> None:
        self._draft.type(GUESS, self._before)
        self.dismiss(False)
