"""The last line of every screen: the keys that matter now, and a short note."""

from collections.abc import Sequence

from textual import events
from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

from tuilab.tui.keys import KEYS, Key
from tuilab.tui.shown_keys import shown

_EVERYWHERE = [key.key for key in KEYS["everywhere"] if key.word]
_HELP = ("question_mark", "f1")
_PALETTE = "ctrl+p"
_MOST_NEEDED = 2  # keys of a place that are kept longest
_GAP = 2  # cells behind a key


class KeyBar(Widget):
    """As many keys as fit, and a note at the right end."""

    DEFAULT_CSS = """
    KeyBar { height: 1; width: 100%; dock: bottom; background: $panel; padding: 0 1; }
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        super().__init__()
        self._keys = _footer_keys(keys)
        self._note = Content("")
        self._asides: tuple[Content, ...] = ()

    def show_keys(self, keys: Sequence[Key]) -> None:
        """Show the keys of the focused widget and its screen."""
        footer_keys = _footer_keys(keys)
        if footer_keys != self._keys:
            self._keys = footer_keys
            self.refresh()

    def note(self, text: Content, *asides: Content) -> None:
        """Show a note, and behind it the first of some asides for which no key has to go."""
        if text != self._note or asides != self._asides:
            self._note = text
            self._asides = asides
            self.refresh()

    def render(self) -> RenderResult:
        """Return the keys that fit at the left end, and the note at the right end."""
        width = self.content_size.width
        note = self._fit_note(width)
        parts = [_draw_key(key) for key in self._fit_keys(width, note)]
        used = sum(part.cell_length for part in parts)
        space = Content(" " * max(width - used - note.cell_length, 0))
        return Content("").join([*parts, space, note])

    def _fit_keys(self, width: int, note: Content) -> list[Key]:
        """Return the keys that fit next to a note. If some do not, the help key is for more."""
        room = width
        if note.cell_length:
            room -= note.cell_length + _GAP
        keys = list(self._keys)
        while len(keys) > 1 and _width_of(keys) > room:
            keys.remove(_least_needed(keys))
            keys = _with_more(keys)
        return keys

    def _fit_note(self, width: int) -> Content:
        """Return the note with the first aside that costs no key."""
        note = self._note
        key_count = len(self._fit_keys(width, note))
        for aside in self._asides:
            if len(self._fit_keys(width, self._note + aside)) == key_count:
                note = self._note + aside
                break
        return note.truncate(width, ellipsis=True)

    def on_click(self, event: events.Click) -> None:
        """Simulate the key whose word was clicked."""
        width = self.content_size.width
        end = 1  # the padding
        for key in self._fit_keys(width, self._fit_note(width)):
            start = end
            end = start + _draw_key(key).cell_length
            if start <= event.x < end - _GAP:
                self.app.simulate_key(key.key)


def answers(place: str) -> Content:
    """Return all keys of a place in one line, for the question that they answer."""
    parts = []
    for key in KEYS[place]:
        parts.append(Content.assemble((shown(key), "bold $text-accent"), f" {key.word}   "))
    return Content("").join(parts)


def _footer_keys(keys: Sequence[Key]) -> list[Key]:
    """Return the keys of the last line: enter first, those that work everywhere last."""
    footer_keys = [key for key in keys if key.is_in_footer and key.word]
    return sorted(footer_keys, key=_place)


def _place(key: Key) -> int:
    """Return the number by which the keys of the last line are sorted.

    Enter comes first, then the keys of the place, then those that work everywhere.
    """
    if key.key == "enter":
        return -2
    if key.key in _EVERYWHERE:
        return _EVERYWHERE.index(key.key)
    return -1


def _with_more(keys: Sequence[Key]) -> list[Key]:
    """Return the keys with "more" as the word of the help key."""
    renamed = []
    for key in keys:
        if key.key in _HELP:
            key = key._replace(word="more")
        renamed.append(key)
    return renamed


def _least_needed(keys: Sequence[Key]) -> Key:
    """Return the key that has to go first.

    First the keys of the place go, from the last on, except for two. Then the palette goes, then
    these two.
    """
    place_keys = [key for key in keys if key.key not in _EVERYWHERE]
    if len(place_keys) > _MOST_NEEDED:
        return place_keys[-1]
    for key in keys:
        if key.key == _PALETTE:
            return key
    return place_keys[-1] if place_keys else keys[-1]


def _width_of(keys: Sequence[Key]) -> int:
    return sum(_draw_key(key).cell_length for key in keys) - _GAP


def _draw_key(key: Key) -> Content:
    return Content.assemble((shown(key), "bold $text-accent"), " ", (key.word, "dim"), "  ")
