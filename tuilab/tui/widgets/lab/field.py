"""One field of a form: name, value, allowed values, and its label or the error of the value."""

from textual.app import ComposeResult, RenderResult
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from tuilab.catalogue.params import describe, has_gpus, is_gpu, spell
from tuilab.catalogue.scenario import Param
from tuilab.defaults import MAX_REPEATS
from tuilab.probes.gpu.is_present import gpu_names
from tuilab.text.display import show
from tuilab.tui.looks.lesson_layout import wrap_lines
from tuilab.tui.looks.marks import to_content
from tuilab.tui.state.draft import BUDGET, GUESS, REPEAT, TIMEOUT, Draft, is_option
from tuilab.tui.state.gpus import NO_USERS, GpuList
from tuilab.tui.widgets.lab.choice import Choice

_GPU_COLUMNS = 44  # columns that a GPU wants next to the names of the fields
_GPU_INDENT = 4  # of GPUs, if there are fewer columns
_NUMBER_BOX = 14  # columns to type a number in
_TEXT_BOX = 26
_MIN_NOTE = 12  # columns of the lines below a value
_NOTE_LINES = 3
_OPTION_VALUES = {
    GUESS: "a number",
    REPEAT: f"1..{MAX_REPEATS}",
    BUDGET: "a time",
    TIMEOUT: "a time",
}


class Field(Widget):
    """Has an editor for the value, and draws everything else around it."""

    DEFAULT_CSS = """
    Field { height: auto; width: 100%; layout: horizontal; }
    Field > Input, Field > Input:focus { background: transparent; background-tint: transparent; }
    Field > Input.-textual-compact { border: none; height: 1; padding: 0; }
    """

    class Changed(Message):
        """The user changed the value."""

    class GpusWanted(Message):
        """The user looks at the choice of GPUs, which has to be up to date."""

    def __init__(self, draft: Draft, key: str, column: int, gpus: GpuList | None = None) -> None:
        super().__init__()
        self.key = key
        self.draft = draft
        self._gpus = gpus  # None until the GPUs were asked for
        self._column = column  # in which the values of the form begin
        self._shown_text = show(draft.text(key))
        self._editor = self._make_editor()

    @property
    def param(self) -> Param:
        return self.draft.fields[self.key]

    @property
    def editor(self) -> Input | Choice:
        """The widget that has the focus when the field is edited."""
        return self._editor

    @property
    def _is_typed(self) -> bool:
        return self.param.type not in ("choice", "bool")

    # ---- the editor

    def compose(self) -> ComposeResult:
        yield self._editor

    def _make_editor(self) -> Input | Choice:
        """Return the editor of the value: a line to type in, or a choice of words."""
        editor: Input | Choice
        if self._is_typed:
            editor = Input(
                self._shown_text, placeholder=self._placeholder, compact=True, classes="editor"
            )
            editor.cursor_blink = False
            editor.styles.width = "1fr" if self.draft.command else self._box_width
            left = self._column
        else:
            editor = Choice(self._choices, classes="editor")
            editor.put(self.draft.text(self.key))
            left = self._column - 1  # the sign around the chosen word
        right = 2 if self.draft.command else 0
        editor.styles.margin = (0, right, 0, left)
        return editor

    @property
    def _choices(self) -> list[str]:
        """The words of a choice.

        For a device they include each GPU of the machine, and the GPU of an earlier run that the
        form was filled from.
        """
        choices = [str(choice) for choice in self.param.choices] or ["false", "true"]
        if not has_gpus(self.param):
            return choices
        labels = []
        if self._gpus:
            labels = [gpu.label for gpu in self._gpus.gpus if is_gpu(gpu.label)]
        choices += labels or gpu_names()
        text = self.draft.text(self.key)
        if is_gpu(text) and text not in choices:
            choices.append(text)
        return choices

    @property
    def _placeholder(self) -> str:
        if is_option(self.key) and self.key != GUESS:
            return spell(self.param.default)
        return ""

    @property
    def _box_width(self) -> int:
        is_text = self.param.type == "str" and not is_option(self.key)
        return _TEXT_BOX if is_text else _NUMBER_BOX

    # ---- changes

    def ask_for_gpus(self) -> None:
        """Ask for the GPUs of the machine, if they can be chosen here."""
        if has_gpus(self.param):
            self.post_message(self.GpusWanted())

    def show_gpus(self, gpus: GpuList) -> None:
        """Show the state of the GPUs."""
        self._gpus = gpus
        editor = self.editor
        if isinstance(editor, Choice) and has_gpus(self.param):
            editor.offer(self._choices)
            self.refresh(layout=True)
            if editor.has_focus:
                self._scroll_into_view()

    def refill(self) -> None:
        """Show the value of the draft, which was changed elsewhere."""
        text = self.draft.text(self.key)
        self._shown_text = show(text)
        editor = self.editor
        if isinstance(editor, Input):
            editor.placeholder = self._placeholder
            editor.value = self._shown_text
        else:
            editor.words = self._choices
            editor.put(text)
        self.refresh(layout=True)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Put the typed text into the draft, without control characters."""
        event.stop()
        safe = show(event.input.value)
        if safe != event.input.value:
            event.input.value = safe  # pasted control characters could steer the terminal
        elif safe != self._shown_text:
            # If they are equal, `refill` put the text there. The draft may then hold another
            # text, of which this is only the part that is safe to show.
            self._shown_text = safe
            self._change(safe)

    def on_choice_changed(self, event: Choice.Changed) -> None:
        event.stop()
        self._change(event.choice.value)

    def _change(self, text: str) -> None:
        self.draft.type(self.key, text)
        self.refresh(layout=True)
        self._scroll_into_view()
        self.post_message(self.Changed())

    def on_mount(self) -> None:
        self.ask_for_gpus()

    def on_descendant_focus(self) -> None:
        self.ask_for_gpus()
        self._scroll_into_view()

    def _scroll_into_view(self) -> None:
        """Show the whole field: an error is below the value."""
        self.call_after_refresh(self.scroll_visible, animate=False)

    # ---- drawing

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + len(self._lines_below(width))

    def render(self) -> RenderResult:
        width = self.size.width
        return Content("\n").join([self._first_line(width), *self._lines_below(width)])

    def _lines_below(self, width: int) -> list[Content]:
        """Return the label of the field or the error of its value, then the GPUs."""
        lines = [Content(" " * self._column) + line for line in self._note(width)]
        if self._gpus and has_gpus(self.param):
            lines += gpu_lines(self._gpus, self.draft.text(self.key), self._column, width)
        return lines

    def _first_line(self, width: int) -> Content:
        """Return the name, the brackets around the editor, and the allowed values behind it."""
        is_changed = self.draft.is_changed(self.key)
        name_style = "bold $text-accent" if is_changed else "bold"
        name = to_content(self.param.name, 60, name_style)
        sign = "● " if is_changed and self.key != GUESS else "  "
        left = (Content.styled(sign, "$text-accent") + name).truncate(
            self._column - 2, ellipsis=True
        )
        if not self._is_typed:
            return left
        closing = Content.styled("]", "$text-muted")
        line = left.pad_right(self._column - 1 - left.cell_length)
        line += Content.styled("[", "$text-muted")
        if self.draft.command:
            return line.pad_right(width - line.cell_length - 2) + closing
        line = line.pad_right(self._box_width) + closing + Content(" ")
        line += Content.styled(self._allowed_values(), "$text-muted")
        return line.truncate(width, ellipsis=True)

    def _allowed_values(self) -> str:
        """Return the values that the field takes; for a changed parameter, its default."""
        if is_option(self.key):
            return _OPTION_VALUES[self.key]
        if self.draft.is_changed(self.key):
            default = show(spell(self.param.default), 60)
            return f"default {default or 'empty'}"
        description = describe(self.param)
        if self.param.low is not None:
            _, _, value_range = description.rpartition(", ")
            return value_range
        return description

    def _note(self, width: int) -> list[Content]:
        """Return the error of the value; without one, the label of the field."""
        room = max(width - self._column, _MIN_NOTE)
        problem = self.draft.problem(self.key)
        if problem:
            return wrap_lines(to_content(f"✗ {problem}", 400, "$text-error"), room)
        label = self.param.label
        is_changed_choice = not self._is_typed and self.draft.is_changed(self.key)
        if is_changed_choice and not self.draft.command:
            label = f"{label} (default {spell(self.param.default)})"
        if not label:
            return []
        return wrap_lines(to_content(label, 300, "$text-muted"), room)[:_NOTE_LINES]


# ---- the GPUs below a field


def gpu_lines(gpus: GpuList, chosen: str, column: int, width: int) -> list[Content]:
    """Return a line for each GPU, then the notes on them.

    If a line has no room for the users of a GPU, they are in a second line. The lines begin at a
    column of the form if the width allows it.
    """
    indent = column if width - column >= _GPU_COLUMNS else _GPU_INDENT
    room = width - indent
    label_width = max((len(gpu.label) for gpu in gpus.gpus), default=0)
    free_width = max((len(gpu.free) for gpu in gpus.gpus), default=0)
    name_width = max((len(gpu.name) for gpu in gpus.gpus), default=0)
    facts = []
    for gpu in gpus.gpus:
        label = gpu.label.ljust(label_width)
        free = gpu.free.ljust(free_width)
        name = gpu.name.ljust(name_width)
        facts.append(f"{label}  {free}  {name}")
    has_room = True
    for gpu, gpu_facts in zip(gpus.gpus, facts, strict=True):
        if len(gpu_facts) + 2 + len(gpu.users) > room:
            has_room = False
    lines = []
    for gpu, gpu_facts in zip(gpus.gpus, facts, strict=True):
        style = "bold $text-accent" if gpu.label == chosen else "$text-muted"
        if has_room or not label_width:
            lines.append(to_content(f"{gpu_facts}  {gpu.users}", None, style))
            continue
        lines.append(to_content(gpu_facts.rstrip(), None, style))
        if gpu.users != NO_USERS:
            below_label = " " * label_width
            lines.append(to_content(f"{below_label}  {gpu.users}", None, style))
    for note in gpus.notes:
        lines += wrap_lines(to_content(note, 400, "$text-muted"), room)
    indented_lines = []
    for line in lines:
        indented_lines.append(Content(" " * indent) + line.truncate(room, ellipsis=True))
    return indented_lines
