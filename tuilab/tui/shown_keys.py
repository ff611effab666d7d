"""The keys of where the user is, and how a key is spelt for people."""

from collections.abc import Sequence

from tuilab.tui.keys import CHANGES, KEYS, Key

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
_IN_A_TEXT = {
    "space",
    "left",
    "right",
    "shift+left",
    "shift+right",
    "home",
    "end",
}  # keys that a line of text takes itself


def keys_at(
    places: Sequence[str], *, is_typing: bool = False, is_read_only: bool = False
) -> list[Key]:
    """Return the keys of some places and those that work everywhere; of a key, what the first place says.

    While something is typed, the keys that would be typed, too, are none; where one may only look, those that change something.
    """
    found: dict[str, Key] = {}
    for place in (*places, "everywhere"):
        for key in KEYS[place]:
            found.setdefault(key.key, key)
    keys = [key for key in found.values() if (not is_typed(key) if is_typing else key.key != "f1")]
    return [key for key in keys if not (is_read_only and changes(key, places))]


def changes(key: Key, places: Sequence[str]) -> bool:
    """Say whether a key changes something; one that is only told does what the same key does in a place after it."""
    keys = (key_of_place for place in (*places, "everywhere") for key_of_place in KEYS[place])
    return is_change(
        key.action
        or next(
            (
                key_of_place.action
                for key_of_place in keys
                if key_of_place.key == key.key and key_of_place.action
            ),
            "",
        )
    )


def is_change(action: str) -> bool:
    """Say whether an action is one of those that change something, as `write('note')`."""
    return action.partition("(")[0].rpartition(".")[2] in CHANGES


def is_typed(key: Key) -> bool:
    """Say whether a line of text takes the key itself."""
    return key.key in _IN_A_TEXT or (len(shown(key)) == 1 and shown(key).isascii())


def shown(key: Key) -> str:
    """Return a key as the user sees it."""
    return _SHOWN.get(key.key, key.key.replace("ctrl+", "^"))
