"""A box in the middle of the screen, above what it is about."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ScreenResultType
from textual.widgets import Static

from tuilab.tui.looks.marks import to_content
from tuilab.tui.terminal.toolkit import TerminalModal

_MOST = 8  # lines about what is asked


def shorten_list(lines: Sequence[str]) -> list[str]:
    """Return lines, of many the first and how many more there are."""
    return [*lines] if len(lines) <= _MOST else [*lines[:_MOST], f"… and {len(lines) - _MOST} more"]


class Dialog(TerminalModal[ScreenResultType]):
    """The frame with its title; a kind of box says in `compose_box` what stands in it."""

    PLACE: ClassVar[str]
    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; }
    Dialog > Vertical {
        width: 72; max-width: 94%; height: auto; max-height: 90%; border: round $primary; background: $surface; padding: 0 1;
        border-title-color: $text-accent;
    }
    Dialog Static { width: 100%; height: auto; }
    Dialog Input, Dialog Input:focus { height: 1; border: none; padding: 0 1; margin: 1 0; background: $panel; }
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
        """Say below the line what is wrong with it."""
        self.query_one("#problem", Static).update(
            to_content(f"✗ {problem}", 300, "$text-error") if problem else Content("")
        )
