"""What a scenario had to say, and after the run what to try next."""

from textual.content import Content

from tuilab.text import show_lines
from tuilab.tui.following import Shown
from tuilab.tui.marks import plain
from tuilab.tui.widgets.pane import TextPane, View

_LINES = 60


class NotesPane(TextPane):
    """The texts that the scenario showed, the last of each title; then what its author says to try."""

    NAME = "notes"

    def __init__(self, try_next: str = "") -> None:
        super().__init__("Notes")
        self._try_next = try_next

    def show(self, run: Shown, view: View) -> None:
        latest = {text.title: text.text for text in run.summary.texts}
        lines: list[Content] = []
        for title, text in latest.items():
            lines += [plain(title, 200, "bold")] if title else []
            lines += [Content(line) for line in show_lines(text).splitlines()[:_LINES]]
        if run.is_over and self._try_next:
            lines += [Content(""), Content.styled("Try next", "bold $text-accent")] if lines else []
            lines += [Content(line) for line in show_lines(self._try_next).strip().splitlines()]
        self.put(lines)
