"""The last line of every screen: which key comes next, and how the screens themselves are doing."""

from collections.abc import Sequence

from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

from tuilab.tui.keys import KEYS, Key, shown


class KeyBar(Widget):
    """The keys that matter here, as many as there is room for; on the right a short note."""

    DEFAULT_CSS = """
    KeyBar { height: 1; width: 100%; dock: bottom; background: $panel; padding: 0 1; }
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self._keys: Sequence[Key] = [key for key in (*KEYS[place], *KEYS["everywhere"]) if key.is_in_footer]
        self._note = Content("")

    def show_keys(self, keys: Sequence[Key]) -> None:
        """Show other keys: those of a pane that has the focus, or of a question."""
        self._keys = keys
        self.refresh()

    def note(self, text: Content) -> None:
        """Show a note on the right."""
        if text != self._note:
            self._note = text
            self.refresh()

    def render(self) -> RenderResult:
        width = self.content_size.width
        note = self._note.truncate(width, ellipsis=True)
        room = width - note.cell_length - (2 if note.cell_length else 0)
        parts = [_part(key) for key in self._keys]
        while len(parts) > 1 and sum(part.cell_length for part in parts) - 2 > room:
            del parts[-3 if len(parts) > 3 else -1]  # how to get help and out is told as long as possible
        used = sum(part.cell_length for part in parts)
        return Content("").join([*parts, Content(" " * max(width - used - note.cell_length, 0)), note])


def _part(key: Key) -> Content:
    return Content.assemble((shown(key), "bold $text-accent"), " ", (key.word, "dim"), "  ")
