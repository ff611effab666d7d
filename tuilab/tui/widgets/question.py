"""Questions in the middle of the screen, asked before a step that cannot be undone."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tuilab.record.states import RunState
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import to_content
from tuilab.tui.widgets.dialog import Dialog, shorten_list
from tuilab.tui.widgets.keybar import answers


class ConfirmDialog(Dialog[bool]):
    """Names what the step is about. Answers True only for the key `y`."""

    PLACE: ClassVar[str] = "question"
    AUTO_FOCUS = ""
    BINDINGS = bindings("question")
    DEFAULT_CSS = """
    ConfirmDialog > Vertical {
        width: 64; border: round $warning; border-title-color: $text-warning;
    }
    """

    def __init__(self, title: str, about: Sequence[str], note: str = "") -> None:
        super().__init__(title)
        self._about = about
        self._note = note

    def compose_box(self) -> ComposeResult:
        """Yield what the question is about, the note, and the keys that answer it."""
        lines = [Content(" ")]
        lines += [to_content(f"  {line}", 200) for line in shorten_list(self._about)]
        lines.append(Content(" "))
        if self._note:
            lines += [to_content(self._note), Content(" ")]
        lines.append(answers(self.PLACE))
        yield Static(Content("\n").join(lines))

    def action_answer(self, answer: str) -> None:
        self.dismiss(answer == "yes")


class StopQuestion(ConfirmDialog):
    """Asks whether to stop a run; for a stopping run, whether to kill it.

    The key that asked the question answers yes as well. For a point of a sweep, `sweep_command` is
    the command that stops the whole sweep.
    """

    PLACE: ClassVar[str] = "question about stopping"
    BINDINGS = bindings("question about stopping")

    def __init__(self, name: str, state: str, sweep_command: str = "") -> None:
        if state == RunState.STOPPING:
            title = "Kill it now?"
            note = "Its processes are killed; unwritten data is lost."
        else:
            title = "Stop this run?"
            note = "What it has measured is kept."
        if sweep_command:
            note += (
                f" The next point of its sweep may start; to stop the whole sweep: {sweep_command}"
            )
        super().__init__(title, [name], note)
