"""One field of a form: name, value, what it takes, and its label or what is wrong with it."""

from textual.app import ComposeResult, RenderResult
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from tuilab.catalogue.params import describe, has_gpus, is_gpu, spell
from tuilab.catalogue.scenario import Param
from tuilab.probes.gpu.is_present import gpu_names
from tuilab.text.display import show
from tuilab.tui.looks.lesson_layout import wrap_lines
from tuilab.tui.looks.marks import to_content
from tuilab.tui.state.draft import BUDGET, GUESS, REPEAT, TIMEOUT, Draft, is_option
from tuilab.tui.state.gpus import GpuList, ListedGpu
from tuilab.tui.widgets.lab.choice import Choice

_NARROW = 44  # columns that a GPU wants beside the names of the fields
_INDENT = 4
_BOX = 14  # columns for a number
_TEXT_BOX = 26


class Field(Widget):
    """The value is edited in place; everything else is drawn around it."""

    DEFAULT_CSS = """
    Field { height: auto; width: 100%; layout: horizontal; }
    Field > Input, Field > Input:focus { background: transparent; background-tint: transparent; }
    Field > Input.-textual-compact { border: none; height: 1; padding: 0; }
    """

    class Changed(Message):
        """The user changed the value."""

    class GpusWanted(Message):
        """Somebody looks at the GPUs of the box."""

    def __init__(self, draft: Draft, key: str, column: int, gpus: GpuList | None = None) -> None:
        super().__init__()
        self.key = key
        self.draft = draft
        self._gpus = gpus  # None: nobody has asked, or there are none
        self._column = column
        self._put = show(draft.text(key))
        self._editor = self._make_editor()

    @property
    def param(self) -> Param:
        return self.draft.fields[self.key]

    @property
    def editor(self) -> Input | Choice:
        """What has the focus when the field has it."""
        return self._editor

    @property
    def _is_typed(self) -> bool:
        return self.param.type not in ("choice", "bool")

    def compose(self) -> ComposeResult:
        yield self._editor

    def _make_editor(self) -> Input | Choice:
        editor: Input | Choice
        if self._is_typed:
            editor = Input(self._put, placeholder=self._placeholder, compact=True, classes="editor")
            editor.cursor_blink = False
            editor.styles.width = "1fr" if self.draft.command else self._box
        else:
            editor = Choice(self._words, classes="editor")
            editor.put(self.draft.text(self.key))
        editor.styles.margin = (
            0,
            2 * bool(self.draft.command),
            0,
            self._column - (not self._is_typed),
        )
        return editor

    @property
    def _words(self) -> list[str]:
        """What there is to choose from: of devices each GPU of the box, too, and the one that an earlier run had."""
        words = [str(choice) for choice in self.param.choices] or ["false", "true"]
        if has_gpus(self.param):
            known = (
                [gpu.label for gpu in self._gpus.gpus if is_gpu(gpu.label)] if self._gpus else []
            )
            words += known or gpu_names()
            words += [
                text for text in [self.draft.text(self.key)] if is_gpu(text) and text not in words
            ]
        return words

    @property
    def _placeholder(self) -> str:
        return spell(self.param.default) if is_option(self.key) and self.key != GUESS else ""

    @property
    def _box(self) -> int:
        return _TEXT_BOX if self.param.type == "str" and not is_option(self.key) else _BOX

    def look(self) -> None:
        """Ask for the GPUs of the box where they are to choose from."""
        if has_gpus(self.param):
            self.post_message(self.GpusWanted())

    def show_gpus(self, gpus: GpuList) -> None:
        """Show the GPUs as they are."""
        self._gpus = gpus
        if isinstance(self.editor, Choice) and has_gpus(self.param):
            self.editor.offer(self._words)
            self.refresh(layout=True)
            if self.editor.has_focus:
                self._come_into_sight()

    def refill(self) -> None:
        """Show what the draft has."""
        self._put = show(self.draft.text(self.key))
        editor = self.editor
        if isinstance(editor, Input):
            editor.placeholder = self._placeholder
            editor.value = self._put
        else:
            editor.words = self._words
            editor.put(self.draft.text(self.key))
        self.refresh(layout=True)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        safe = show(event.input.value)
        if safe != event.input.value:
            event.input.value = safe  # it was pasted: what steers a terminal stays out
        elif (
            safe != self._put
        ):  # else we put it there ourselves, and what it stands for may be unsafe to show
            self._put = safe
            self._take(safe)

    def on_choice_changed(self, event: Choice.Changed) -> None:
        event.stop()
        self._take(event.choice.value)

    def _take(self, text: str) -> None:
        self.draft.type(self.key, text)
        self.refresh(layout=True)
        self._come_into_sight()
        self.post_message(self.Changed())

    def on_mount(self) -> None:
        self.look()

    def on_descendant_focus(self) -> None:
        self.look()
        self._come_into_sight()

    def _come_into_sight(self) -> None:
        """Show the whole field: what is wrong stands below the value."""
        self.call_after_refresh(self.scroll_visible, animate=False)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + len(self._below(width))

    def render(self) -> RenderResult:
        width = self.size.width
        return Content("\n").join([self._first_line(width), *self._below(width)])

    def _below(self, width: int) -> list[Content]:
        lines = [Content(" " * self._column) + line for line in self._note(width)]
        if self._gpus and has_gpus(self.param):
            lines += gpu_lines(self._gpus, self.draft.text(self.key), self._column, width)
        return lines

    def _first_line(self, width: int) -> Content:
        is_changed = self.draft.is_changed(self.key)
        name = to_content(self.param.name, 60, "bold $text-accent" if is_changed else "bold")
        sign = Content.styled("● " if is_changed and self.key != GUESS else "  ", "$text-accent")
        left = (sign + name).truncate(self._column - 2, ellipsis=True)
        if not self._is_typed:
            return left
        box = Content.styled("[", "$text-muted"), Content.styled("]", "$text-muted")
        line = left.pad_right(self._column - 1 - left.cell_length) + box[0]
        if self.draft.command:
            return line.pad_right(width - line.cell_length - 2) + box[1]
        line = line.pad_right(self._box) + box[1] + Content(" ")
        return (line + Content.styled(self._takes(), "$text-muted")).truncate(width, ellipsis=True)

    def _takes(self) -> str:
        if is_option(self.key):
            return {GUESS: "a number", REPEAT: "1..1000", BUDGET: "a time", TIMEOUT: "a time"}[
                self.key
            ]
        if self.draft.is_changed(self.key):
            return f"default {show(spell(self.param.default), 60) or 'empty'}"
        return (
            describe(self.param).rpartition(", ")[2]
            if self.param.low is not None
            else describe(self.param)
        )

    def _note(self, width: int) -> list[Content]:
        """Return the lines below the value."""
        room = max(width - self._column, 12)
        if problem := self.draft.problem(self.key):
            return wrap_lines(to_content(f"✗ {problem}", 400, "$text-error"), room)
        label = self.param.label
        if not self._is_typed and self.draft.is_changed(self.key):
            label = (
                label if self.draft.command else f"{label} (default {spell(self.param.default)})"
            )
        return wrap_lines(to_content(label, 300, "$text-muted"), room)[:3] if label else []


def gpu_lines(found: GpuList, chosen: str, column: int, width: int) -> list[Content]:
    """Return a line for each GPU, or two where one is too short, then what is not known; they begin at a column if they can."""
    indent = column if width - column >= _NARROW else _INDENT
    labels, free, names = (
        max((len(getattr(gpu, part)) for gpu in found.gpus), default=0)
        for part in ("label", "free", "name")
    )
    rows = [
        (gpu, f"{gpu.label:{labels}}  {gpu.free:{free}}  {gpu.name:{names}}") for gpu in found.gpus
    ]
    is_short = any(len(words) + 2 + len(gpu.who) > width - indent for gpu, words in rows)
    lines = [
        line
        for gpu, words in rows
        for line in _lines(gpu, words, labels if is_short else 0, gpu.label == chosen)
    ]
    notes = [
        line
        for note in found.notes
        for line in wrap_lines(to_content(note, 400, "$text-muted"), width - indent)
    ]
    return [
        Content(" " * indent) + line.truncate(width - indent, ellipsis=True)
        for line in [*lines, *notes]
    ]


def _lines(gpu: ListedGpu, words: str, below: int, is_chosen: bool) -> list[Content]:
    """Return what there is to say of a GPU in one line; in two, the second of which begins `below` its name."""
    style = "bold $text-accent" if is_chosen else "$text-muted"
    if not below:
        return [to_content(f"{words}  {gpu.who}", None, style)]
    who = [] if gpu.who == "nobody" else [to_content(f"{'':{below}}  {gpu.who}", None, style)]
    return [to_content(words.rstrip(), None, style), *who]
