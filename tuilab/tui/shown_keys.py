"""The keys of where the user is, and how a key is spelt for people."""

from collections.abc import Sequence

from tuilab.tui.keys import KEYS, Key

_SHOWN = {
    "slash": "/",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "question_mark": "?",
    "escape": "esc",
    "plus": "+",
    "minus": "-",
    "comma": ",",
    "full_stop": ".",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "shift+left": "shift ←",
    "shift+right": "shift →",
    "shift+tab": "shift tab",
}
_IN_A_TEXT = {"space", "left", "right", "shift+left", "shift+right", "home", "end"}  # keys that a line of text takes itself


def keys_at(places: Sequence[str], *, is_typing: bool = False) -> list[Key]:
    """Return the keys of some places and those that work everywhere; of a key, what the first place says.

    While something is typed, the keys that would be typed, too, are none.
    """
    found: dict[str, Key] = {}
    for place in (*places, "everywhere"):
        for key in KEYS[place]:
            found.setdefault(key.key, key)
    return [key for key in found.values() if (not is_typed(key) if is_typing else key.key != "f1")]


def is_typed(key: Key) -> bool:
    """Say whether a line of text takes the key itself."""
    return key.key in _IN_A_TEXT or (len(shown(key)) == 1 and shown(key).isascii())


def shown(key: Key) -> str:
    """Return a key as the user sees it."""
    return _SHOWN.get(key.key, key.key.replace("ctrl+", "^"))
