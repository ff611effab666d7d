"""A question in the middle of the screen, asked before something that cannot be taken back."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import plain
from tuilab.tui.terminal.textual_parts import TextualModal
from tuilab.tui.widgets.keybar import answers

_NAMED = 8


class Question(TextualModal[bool]):
    """Names what it is about; only `y` says yes."""

    PLACE: ClassVar[str] = "question"
    AUTO_FOCUS = ""
    BINDINGS = bindings("question")
    DEFAULT_CSS = """
    Question { align: center middle; background: $background 60%; }
    Question > Vertical {
        width: 64; max-width: 92%; height: auto; max-height: 90%; border: round $warning; background: $surface; padding: 0 1;
        border-title-color: $text-warning;
    }
    Question Static { width: 100%; height: auto; }
    """

    def __init__(self, title: str, about: Sequence[str], note: str = "") -> None:
        super().__init__()
        self._title, self._about, self._note = title, about, note

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = plain(self._title)
        with box:
            lines = [Content(" "), *(plain(f"  {line}", 200) for line in self._about[:_NAMED])]
            if len(self._about) > _NAMED:
                lines.append(plain(f"  … and {len(self._about) - _NAMED} more"))
            lines += [Content(" "), *([plain(self._note), Content(" ")] if self._note else [])]
            yield Static(Content("\n").join([*lines, answers(self.PLACE)]))

    def action_answer(self, answer: str) -> None:
        self.dismiss(answer == "yes")
