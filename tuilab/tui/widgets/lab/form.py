"""The form of a scenario: made from the signature of its function `run`, checked by the rules of the command line."""

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

_VALUES = "preset"


class Form(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Edits a draft in place and says when it did."""

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
        self._built: Draft | None = None  # whose fields are there
        self._goal: str | None = None  # the field that is to have the focus
        self._presets: list[Preset] = []
        self._command = ""
        self._gpus: GpuList | None = None

    def fill(self, draft: Draft, runs: Sequence[PastRun]) -> None:
        """Show the fields of a draft; of one that is shown already, only the presets can be others."""
        self._presets = presets(draft.scenario, runs)
        self._draft = draft
        self.call_later(self._build)

    async def _build(self) -> None:
        """Make the fields, unless they are there; asked several times meanwhile, it makes only the newest."""
        if self._draft is self._built:
            for choice in self.query("#values").results(Choice):
                choice.offer([preset.name for preset in self._presets])
        elif self._draft:
            self._built = self._draft
            with self.app.batch_update():
                await self.remove_children()
                await self.mount_all(self._make(self._draft))
            self.show_command(self._command)
        if self._goal is not None:
            self._go_to(self._goal)

    def _make(self, draft: Draft) -> list[Widget]:
        if draft.scenario.error:
            return [Static(to_content("No form: the file cannot be used.", None, "$text-muted"))]
        if draft.command:
            column = max(len(name) for name in draft.fields) + 4
            return [
                *(Field(draft, key, column) for key in draft.fields),
                _gap(),
                Static(id="command"),
            ]
        names = [param.name for param in draft.fields.values()] + (
            [_VALUES] if draft.scenario.params else []
        )
        column = max(9, min(18, max(map(len, names)) + 4))
        widgets: list[Widget] = []
        if GUESS in draft.fields:
            question = Paragraph(inline(show(flow(draft.scenario.sections["Predict"]))))
            widgets += [Static(heading("Predict")), question, Field(draft, GUESS, column), _gap()]
        if draft.scenario.params:
            widgets.append(Static(heading("Parameters")))
            values = Choice([preset.name for preset in self._presets], id="values")
            widgets.append(_Row(_VALUES, "", values, column))
            widgets += [
                *(Field(draft, param.name, column, self._gpus) for param in draft.scenario.params),
                _gap(),
            ]
        quick = Choice(["no", "yes"], int(draft.is_quick), id="quick")
        widgets += [
            Static(heading("Run")),
            _Row("quick", "smaller sizes, one process, takes seconds", quick, column),
        ]
        widgets += [Field(draft, key, column) for key in (REPEAT, BUDGET, TIMEOUT)]
        return [*widgets, _gap(), Static(id="command")]

    def show_command(self, command: str) -> None:
        """Show the command line that does the same, or what stands in its way."""
        self._command = command
        for line in self.query("#command").results(Static):
            line.update(to_content(command, 2000, "$text-secondary"))

    def show_gpus(self, gpus: GpuList) -> None:
        """Show the GPUs that there are to choose from."""
        self._gpus = gpus
        for field in self.query(Field):
            field.show_gpus(gpus)

    def go_to(self, key: str = "") -> None:
        """Give the focus to a field, else to the first, as soon as there is one."""
        self._goal = key
        for field in self.query(Field):
            field.look()
        self.call_later(self._build)

    def _go_to(self, key: str) -> None:
        self._goal = None
        editors = [field.editor for field in self.query(Field) if field.key == key]
        for editor in editors or self.query(".editor").results(Widget):
            editor.focus()
            return

    def refill(self) -> None:
        """Show what the draft has: it was changed elsewhere."""
        for field in self.query(Field):
            field.refill()
        for choice in self.query("#quick").results(Choice):
            choice.put("yes" if self._draft and self._draft.is_quick else "no")

    def on_choice_changed(self, event: Choice.Changed) -> None:
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
        """Go to the field above or below."""
        editors = list(self.query(".editor").results(Widget))
        here = next((number for number, editor in enumerate(editors) if editor.has_focus), 0)
        editors[max(0, min(len(editors) - 1, here + count))].focus()


class _Row(Widget):
    """A choice with its name and what it means."""

    DEFAULT_CSS = "_Row { height: auto; width: 100%; layout: horizontal; }"

    def __init__(self, name: str, note: str, choice: Choice, column: int) -> None:
        super().__init__()
        self._title = Content.styled(f"  {name}", "bold")
        self._note, self._column = Content.styled(note, "$text-muted"), column
        self._choice = choice
        choice.add_class("editor")
        choice.styles.margin = (0, 0, 0, column - 1)

    def compose(self) -> ComposeResult:
        yield self._choice

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def render(self) -> RenderResult:
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Content]:
        """Return the name, and below it what it means, all of it."""
        note = wrap_lines(self._note, max(width - self._column, 8)) if self._note else []
        return [self._title, *(Content(" " * self._column) + line for line in note)]


def _gap() -> Static:
    return Static(classes="gap")
