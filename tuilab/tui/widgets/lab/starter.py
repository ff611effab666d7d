"""Start runs from the Lab screen: ask for the prediction first, and check the form."""

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.widgets import Input, Static

from tuilab.errors import TuilabError
from tuilab.text.display import join
from tuilab.text.wrapping import flow
from tuilab.tui.keys import bindings
from tuilab.tui.looks.lesson_layout import inline
from tuilab.tui.navigator import Navigator
from tuilab.tui.state import drafts
from tuilab.tui.state.draft import GUESS, Draft
from tuilab.tui.state.drafts import Drafts
from tuilab.tui.state.own.own_commands import TOPIC
from tuilab.tui.widgets.dialog import Dialog
from tuilab.tui.widgets.keybar import answers
from tuilab.tui.widgets.lab.columns import Columns
from tuilab.tui.widgets.paragraph import Paragraph

if TYPE_CHECKING:
    from tuilab.engine.messages import RunOrder

_MAX_QUESTION = 600  # characters


class Starter:
    """Starts what is chosen on the Lab screen."""

    def __init__(self, columns: Columns, drafts: Drafts, navigator: Navigator) -> None:
        self._columns = columns
        self._drafts = drafts
        self._navigator = navigator

    def start(self, draft: Draft | None, command: str) -> None:
        """Run a draft; without a draft, the topic at the cursor.

        The form of a user's command has to be open: if it is not, open it instead. If a prediction
        is missing, ask for it first. If values are wrong, only show that.
        """
        if draft and draft.command and not self._columns.bench.is_in_form:
            self._columns.show_part("form", "command")
        elif draft and self._drafts.has_to_ask(draft):
            self._ask(draft, command)
        elif draft and draft.problems:
            self._show_problems(draft)
        elif self._columns.catalogue.row is not None:
            self._run(draft, command)

    def _show_problems(self, draft: Draft) -> None:
        """Focus the first field with a wrong value, and name them all."""
        keys = list(draft.problems)
        names = [draft.fields[key].name for key in keys]
        self._columns.show_part("form", keys[0])
        verb = "has a wrong value" if len(names) == 1 else "have wrong values"
        self._navigator.tell(f"not started: {join(names)} {verb}")

    def _ask(self, draft: Draft, command: str) -> None:
        """Ask for a prediction, then start the draft unless the user cancels."""

        def continue_after(is_confirmed: bool | None) -> None:
            if is_confirmed:
                self._drafts.note_asked(draft)
                self._columns.bench.refill()
                self.start(draft, command)

        self._columns.app.push_screen(PredictionDialog(draft), continue_after)

    def _run(self, draft: Draft | None, command: str) -> None:
        """Start the runs of a draft, or of the topic at the cursor. If that fails, show why."""
        try:
            orders = self._make_orders(draft, command)
            if orders:
                self._navigator.run_orders(orders)
        except TuilabError as problem:
            self._navigator.tell(str(problem))

    def _make_orders(self, draft: Draft | None, command: str) -> "list[RunOrder]":
        """Return the order of a draft, or the orders of all scenarios of the topic.

        The user's commands are not run together: for their topic, show a message and return
        nothing.
        """
        session = self._navigator.desk
        if draft:
            return [drafts.order_of(draft, session)]
        row = self._columns.catalogue.row
        if row is None:
            return []
        if row.topic == TOPIC:
            self._navigator.tell("choose one of your commands; its form runs it", is_problem=False)
            return []
        scenarios = self._columns.catalogue.of_topic(row.topic)
        return drafts.orders_of_topic(scenarios, command, session)


class PredictionDialog(Dialog[bool]):
    """Asks for the prediction and puts it into the draft. Answers whether to run the draft."""

    PLACE: ClassVar[str] = "prediction"
    BINDINGS = bindings("prediction")

    def __init__(self, draft: Draft) -> None:
        super().__init__("What do you expect?")
        self._draft = draft
        self._old_text = draft.text(GUESS)

    def compose_box(self) -> ComposeResult:
        """Show the question, a line to type in, a line for an error, and the keys."""
        question = flow(self._draft.scenario.sections["Predict"])
        yield Paragraph(inline(question[:_MAX_QUESTION]))
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
        self._draft.type(GUESS, self._old_text)
        self.dismiss(False)
