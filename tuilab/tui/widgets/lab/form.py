"""The form of a scenario.

It is made from the signature of its function `run`, and checked by the rules of the command line.
"""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult, RenderResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from tuilab.runs.past_runs import PastRun
from tuilab.text.display import show
from tuilab.text.wrapping import flow
from tuilab.tui.looks.lesson_layout import heading, inline, wrap_lines
from tuilab.tui.looks.marks import to_content
from tuilab.tui.state.draft import BUDGET, GUESS, REPEAT, TIMEOUT, Draft
from tuilab.tui.state.gpus import GpuList
from tuilab.tui.state.presets import Preset, presets
from tuilab.tui.widgets.lab.choice import Choice
from tuilab.tui.widgets.lab.field import Field
from tuilab.tui.widgets.paragraph import Paragraph

_PRESET = "preset"  # the name of the choice of presets
_MIN_COLUMN = 9  # in which the values of the form begin
_MAX_COLUMN = 18


class Form(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Edits a draft in place, and sends a message after each change."""

    PLACE: ClassVar[str] = "form"
    DEFAULT_CSS = """
    Form { height: 1fr; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
           scrollbar-color: $border; scrollbar-background: transparent; }
    Form:ansi { scrollbar-color: ansi_bright_black; }
    Form .gap { height: 1; }
    Form Static, Form Paragraph { height: auto; padding-right: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", show=False),
        Binding("down", "step(1)", show=False),
    ]

    class Changed(Message):
        """A value changed."""

    def __init__(self) -> None:
        super().__init__(id="form")
        self._draft: Draft | None = None
        self._built_draft: Draft | None = None  # whose fields exist
        self._wanted_field: str | None = None  # the field to focus; an empty key is the first field
        self._presets: list[Preset] = []
        self._command = ""
        self._gpus: GpuList | None = None

    def fill(self, draft: Draft, runs: Sequence[PastRun]) -> None:
        """Show the fields of a draft. If it is shown already, only the presets may change."""
        self._presets = presets(draft.scenario, runs)
        self._draft = draft
        self.call_later(self._build)

    async def _build(self) -> None:
        """Make the fields of the newest draft, unless they exist already."""
        if self._draft is self._built_draft:
            for choice in self.query("#values").results(Choice):
                choice.offer([preset.name for preset in self._presets])
        elif self._draft:
            self._built_draft = self._draft
            with self.app.batch_update():
                await self.remove_children()
                await self.mount_all(self._make_widgets(self._draft))
            self.show_command(self._command)
        if self._wanted_field is not None:
            self._focus_field(self._wanted_field)

    def _make_widgets(self, draft: Draft) -> list[Widget]:
        """Return the widgets of a form. A file with an error has none, only a sentence.

        `column` is where the values begin. A user's command has neither presets nor headings.
        """
        if draft.scenario.error:
            return [Static(to_content("No form: the file cannot be used.", None, "$text-muted"))]
        if draft.command:
            column = max(len(name) for name in draft.fields) + 4
            fields = [Field(draft, key, column) for key in draft.fields]
            return [*fields, _gap(), Static(id="command")]
        names = [param.name for param in draft.fields.values()]
        if draft.scenario.params:
            names.append(_PRESET)
        longest_name = max(len(name) for name in names)
        column = max(_MIN_COLUMN, min(_MAX_COLUMN, longest_name + 4))
        return [
            *self._make_question(draft, column),
            *self._make_params(draft, column),
            *self._make_options(draft, column),
            Static(id="command"),
        ]

    def _make_question(self, draft: Draft, column: int) -> list[Widget]:
        """Return the question of the lesson with its field; nothing if it has no question."""
        if GUESS not in draft.fields:
            return []
        question = inline(show(flow(draft.scenario.sections["Predict"])))
        return [
            Static(heading("Predict")),
            Paragraph(question),
            Field(draft, GUESS, column),
            _gap(),
        ]

    def _make_params(self, draft: Draft, column: int) -> list[Widget]:
        """Return the presets and the fields of the parameters; nothing without parameters."""
        params = draft.scenario.params
        if not params:
            return []
        choice = Choice([preset.name for preset in self._presets], id="values")
        fields = [Field(draft, param.name, column, self._gpus) for param in params]
        return [
            Static(heading("Parameters")),
            _ChoiceRow(_PRESET, "", choice, column),
            *fields,
            _gap(),
        ]

    def _make_options(self, draft: Draft, column: int) -> list[Widget]:
        """Return the fields of the options of a run, which every scenario has."""
        choice = Choice(["no", "yes"], int(draft.is_quick), id="quick")
        return [
            Static(heading("Run")),
            _ChoiceRow("quick", "smaller sizes, one process, takes seconds", choice, column),
            Field(draft, REPEAT, column),
            Field(draft, BUDGET, column),
            Field(draft, TIMEOUT, column),
            _gap(),
        ]

    def show_command(self, command: str) -> None:
        """Show the command line that does the same, or what is wrong with the form."""
        self._command = command
        for line in self.query("#command").results(Static):
            line.update(to_content(command, 2000, "$text-secondary"))

    def show_gpus(self, gpus: GpuList) -> None:
        """Show the GPUs that can be chosen."""
        self._gpus = gpus
        for field in self.query(Field):
            field.show_gpus(gpus)

    def go_to(self, key: str = "") -> None:
        """Focus a field, else the first field, as soon as the fields exist."""
        self._wanted_field = key
        for field in self.query(Field):
            field.ask_for_gpus()
        self.call_later(self._build)

    def _focus_field(self, key: str) -> None:
        """Focus a field, else the first one that can be edited, and forget the request for it."""
        self._wanted_field = None
        for field in self.query(Field):
            if field.key == key:
                field.editor.focus()
                return
        for editor in self.query(".editor").results(Widget):
            editor.focus()
            return

    def refill(self) -> None:
        """Show the values of the draft, which was changed elsewhere."""
        for field in self.query(Field):
            field.refill()
        is_quick = self._draft is not None and self._draft.is_quick
        for choice in self.query("#quick").results(Choice):
            choice.put("yes" if is_quick else "no")

    def on_choice_changed(self, event: Choice.Changed) -> None:
        """Put a preset, or the choice of a quick run, into the draft; show all values."""
        event.stop()
        if self._draft is None:
            return
        if event.choice.id == "values":
            self._presets[event.choice.chosen].fill(self._draft)
        else:
            self._draft.is_quick = event.choice.value == "yes"
        self.refill()
        self.post_message(self.Changed())

    def on_field_changed(self, event: Field.Changed) -> None:
        event.stop()
        self.post_message(self.Changed())

    def action_step(self, count: int) -> None:
        """Focus the field `count` places below, at most the last one."""
        editors = list(self.query(".editor").results(Widget))
        place = 0
        for number, editor in enumerate(editors):
            if editor.has_focus:
                place = number
        last_place = len(editors) - 1
        new_place = max(0, min(last_place, place + count))
        editors[new_place].focus()


class _ChoiceRow(Widget):
    """A choice with its name and an explanation below it."""

    DEFAULT_CSS = "_ChoiceRow { height: auto; width: 100%; layout: horizontal; }"

    def __init__(self, name: str, note: str, choice: Choice, column: int) -> None:
        """Lay out a choice, whose words begin at a column as the values of fields do."""
        super().__init__()
        self._title = Content.styled(f"  {name}", "bold")
        self._note = Content.styled(note, "$text-muted")
        self._column = column
        self._choice = choice
        choice.add_class("editor")
        choice.styles.margin = (0, 0, 0, column - 1)  # 1: the sign around the chosen word

    def compose(self) -> ComposeResult:
        yield self._choice

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def render(self) -> RenderResult:
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Content]:
        """Return the name, and below it the explanation, which is wrapped."""
        lines = [self._title]
        if self._note:
            note = wrap_lines(self._note, max(width - self._column, 8))
            lines += [Content(" " * self._column) + line for line in note]
        return lines


def _gap() -> Static:
    return Static(classes="gap")
