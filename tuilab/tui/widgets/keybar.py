"""The last line of every screen: which key comes next, and how the screens themselves are doing."""

from collections.abc import Sequence

from textual import events
from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

from tuilab.tui.keys import KEYS, Key
from tuilab.tui.shown_keys import shown

_EVERYWHERE = [key.key for key in KEYS["everywhere"] if key.word]
_HELP = ("question_mark", "f1")
_MOST_NEEDED = 2  # keys of a place


class KeyBar(Widget):
    """The keys that matter here, as many as there is room for; on the right a short note."""

    DEFAULT_CSS = """
    KeyBar { height: 1; width: 100%; dock: bottom; background: $panel; padding: 0 1; }
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        super().__init__()
        self._keys = _told(keys)
        self._note = Content("")
        self._asides: tuple[Content, ...] = ()

    def show_keys(self, keys: Sequence[Key]) -> None:
        """Show the keys of what has the focus."""
        if _told(keys) != self._keys:
            self._keys = _told(keys)
            self.refresh()

    def note(self, text: Content, *asides: Content) -> None:
        """Show a note on the right, and beside it the first of some words for which no key gives way."""
        if (text, asides) != (self._note, self._asides):
            self._note, self._asides = text, asides
            self.refresh()

    def render(self) -> RenderResult:
        width = self.content_size.width
        note = self._note_at(width)
        parts = [_part(key) for key in self._shown(width, note)]
        used = sum(part.cell_length for part in parts)
        return Content("").join(
            [*parts, Content(" " * max(width - used - note.cell_length, 0)), note]
        )

    def _shown(self, width: int, note: Content) -> list[Key]:
        """Return the keys that there is room for: those at the end give way, but for the way out and to the others."""
        room = width - note.cell_length - (2 if note.cell_length else 0)
        keys = list(self._keys)
        while len(keys) > 1 and sum(_part(key).cell_length for key in keys) - 2 > room:
            keys.remove(_least(keys))
            keys = [key._replace(word="more") if key.key in _HELP else key for key in keys]
        return keys

    def _note_at(self, width: int) -> Content:
        keys = len(self._shown(width, self._note))
        wholes = (self._note + aside for aside in self._asides)
        fitting = (whole for whole in wholes if len(self._shown(width, whole)) == keys)
        return next(fitting, self._note).truncate(width, ellipsis=True)

    def on_click(self, event: events.Click) -> None:
        """Do what the key does whose word was clicked."""
        end = 1  # the padding
        width = self.content_size.width
        for key in self._shown(width, self._note_at(width)):
            start, end = end, end + _part(key).cell_length
            if start <= event.x < end - 2:
                self.app.simulate_key(key.key)


def answers(place: str) -> Content:
    """Return the keys that answer a question, all of them, for a line of its own."""
    return Content("").join(
        Content.assemble((shown(key), "bold $text-accent"), f" {key.word}   ")
        for key in KEYS[place]
    )


def _told(keys: Sequence[Key]) -> list[Key]:
    """Return the keys of the footer: enter first, those that work everywhere last."""
    return sorted((key for key in keys if key.is_in_footer and key.word), key=_place)


def _place(key: Key) -> int:
    if key.key == "enter":
        return -2
    return _EVERYWHERE.index(key.key) if key.key in _EVERYWHERE else -1


def _least(keys: Sequence[Key]) -> Key:
    """Return the key that gives way first: the last one of the place, of which two stay longest, then the palette."""
    of_place = [key for key in keys if key.key not in _EVERYWHERE]
    if len(of_place) > _MOST_NEEDED:
        return of_place[-1]
    return next((key for key in keys if key.key == "ctrl+p"), (of_place or keys)[-1])


def _part(key: Key) -> Content:
    return Content.assemble((shown(key), "bold $text-accent"), " ", (key.word, "dim"), "  ")
