"""A box in the middle of the screen that asks for something."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ScreenResultType
from textual.widgets import Static

from tuilab.tui.looks.marks import to_content
from tuilab.tui.terminal.toolkit import TerminalModal

_MAX_LINES = 8  # about the question


def shorten_list(lines: Sequence[str]) -> list[str]:
    """Return the lines; of many lines, the first ones and how many more there are."""
    hidden = len(lines) - _MAX_LINES
    if hidden <= 0:
        return list(lines)
    return [*lines[:_MAX_LINES], f"… and {hidden} more"]


class Dialog(TerminalModal[ScreenResultType]):
    """The frame with its title. A subclass yields its content in `compose_box`."""

    PLACE: ClassVar[str]
    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; }
    Dialog > Vertical {
        width: 72; max-width: 94%; height: auto; max-height: 90%;
        border: round $primary; background: $surface; padding: 0 1;
        border-title-color: $text-accent;
    }
    Dialog Static { width: 100%; height: auto; }
    Dialog Input, Dialog Input:focus {
        height: 1; border: none; padding: 0 1; margin: 1 0; background: $panel;
    }
    """

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = to_content(self._title, 100)
        with box:
            yield from self.compose_box()

    def compose_box(self) -> ComposeResult:
        raise NotImplementedError

    def show_problem(self, problem: object) -> None:
        """Show below the line what is wrong with it; nothing for an empty problem."""
        line = Content("")
        if problem:
            line = to_content(f"✗ {problem}", 300, "$text-error")
        self.query_one("#problem", Static).update(line)
