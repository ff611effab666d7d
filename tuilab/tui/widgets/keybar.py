"""The last line of every screen: which key comes next, and how the screens themselves are doing."""

from collections.abc import Sequence

from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

from tuilab.tui.keys import KEYS, Key, shown

_EVERYWHERE = [key.key for key in KEYS["everywhere"]]
_PALETTE = "ctrl+p"


class KeyBar(Widget):
    """The keys that matter here, as many as there is room for; on the right a short note."""

    DEFAULT_CSS = """
    KeyBar { height: 1; width: 100%; dock: bottom; background: $panel; padding: 0 1; }
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        super().__init__()
        self._keys = _told(keys)
        self._note = Content("")

    def show_keys(self, keys: Sequence[Key]) -> None:
        """Show the keys of what has the focus."""
        if _told(keys) != self._keys:
            self._keys = _told(keys)
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
        last = sum(
            key.key in _EVERYWHERE and key.key != _PALETTE for key in self._keys
        )  # how to get out and help stays longest
        while len(parts) > 1 and sum(part.cell_length for part in parts) - 2 > room:
            del parts[-(last + 1) if len(parts) > last else -1]
        used = sum(part.cell_length for part in parts)
        return Content("").join([*parts, Content(" " * max(width - used - note.cell_length, 0)), note])


def answers(place: str) -> Content:
    """Return the keys that answer a question, all of them, for a line of its own."""
    return Content("").join(Content.assemble((shown(key), "bold $text-accent"), f" {key.word}   ") for key in KEYS[place])


def _told(keys: Sequence[Key]) -> list[Key]:
    """Return the keys of the footer: enter first, those that work everywhere last."""
    return sorted((key for key in keys if key.is_in_footer and key.word), key=_place)


def _place(key: Key) -> int:
    if key.key == "enter":
        return -2
    return _EVERYWHERE.index(key.key) if key.key in _EVERYWHERE else -1


def _part(key: Key) -> Content:
    return Content.assemble((shown(key), "bold $text-accent"), " ", (key.word, "dim"), "  ")
