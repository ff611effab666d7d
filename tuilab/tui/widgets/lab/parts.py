"""The parts of the Lab's right side on one line, the open one marked."""

from collections.abc import Iterator

from textual import events
from textual.app import RenderResult
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

PARTS = {"lesson": "p", "form": "f", "code": "c", "runs": "r"}  # and the keys that open them


class Parts(Widget):
    """Says which part is open and by which key the others are reached."""

    DEFAULT_CSS = "Parts { height: 1; width: 100%; }"

    class Picked(Message):
        """A part was clicked."""

        def __init__(self, part: str) -> None:
            super().__init__()
            self.part = part

    def __init__(self) -> None:
        super().__init__()
        self._open = ""

    def show(self, part: str) -> None:
        """Mark the open part; none for what has no parts."""
        if part != self._open:
            self._open = part
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        for part, start, end in _places():
            if start <= event.x < end:
                self.post_message(self.Picked(part))

    def render(self) -> RenderResult:
        tabs = []
        for part, key in PARTS.items():
            is_open = part == self._open
            name = Content.styled(part.capitalize(), "bold underline $text-primary" if is_open else "$text-muted")
            tabs.append(Content.styled(key, "bold $text-accent") + Content(" ") + name)
        return Content("   ").join(tabs)


def _places() -> Iterator[tuple[str, int, int]]:
    at = 0
    for part in PARTS:
        yield part, at, at + len(part) + 2
        at += len(part) + 5
