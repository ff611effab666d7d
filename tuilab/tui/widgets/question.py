"""A question in the middle of the screen, asked before something that cannot be taken back."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import to_content
from tuilab.tui.widgets.dialog import Dialog, shorten_list
from tuilab.tui.widgets.keybar import answers


class ConfirmDialog(Dialog[bool]):
    """Names what it is about; only `y` says yes."""

    PLACE: ClassVar[str] = "question"
    AUTO_FOCUS = ""
    BINDINGS = bindings("question")
    DEFAULT_CSS = """
    ConfirmDialog > Vertical { width: 64; border: round $warning; border-title-color: $text-warning; }
    """

    def __init__(self, title: str, about: Sequence[str], note: str = "") -> None:
        super().__init__(title)
        self._about, self._note = about, note

    def compose_box(self) -> ComposeResult:
        lines = [
            Content(" "),
            *(to_content(f"  {line}", 200) for line in shorten_list(self._about)),
        ]
        lines += [Content(" "), *([to_content(self._note), Content(" ")] if self._note else [])]
        yield Static(Content("\n").join([*lines, answers(self.PLACE)]))

    def action_answer(self, answer: str) -> None:
        self.dismiss(answer == "yes")
