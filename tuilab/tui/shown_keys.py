"""The keys that work at the focused widget and its screen, and how users see their names."""

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
# Keys that a line of text uses itself.
_IN_A_TEXT = {
    "space",
    "left",
    "right",
    "shift+left",
    "shift+right",
    "home",
    "end",
}


def keys_at(
    places: Sequence[str], *, is_typing: bool = False, is_read_only: bool = False
) -> list[Key]:
    """Return the keys of some places, and those that work everywhere.

    If several places have a key, the entry of the first place counts. While the user types, keys
    that a line of text takes are left out. In read-only mode, keys that change something are left
    out.
    """
    found: dict[str, Key] = {}
    for place in (*places, "everywhere"):
        for key in KEYS[place]:
            found.setdefault(key.key, key)
    keys = [key for key in found.values() if (not is_typed(key) if is_typing else key.key != "f1")]
    return [key for key in keys if not (is_read_only and changes(key, places))]


def changes(key: Key, places: Sequence[str]) -> bool:
    """Return whether a key changes something.

    An entry without an action only describes its key. Its action is then that of the first entry
    with an action for the same key in these places, or everywhere.
    """
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
    """Return whether an action changes something, as `write('note')` does."""
    return action.partition("(")[0].rpartition(".")[2] in CHANGES


def is_typed(key: Key) -> bool:
    """Return whether a line of text takes the key itself."""
    return key.key in _IN_A_TEXT or (len(shown(key)) == 1 and shown(key).isascii())


def shown(key: Key) -> str:
    """Return the name of a key as the user sees it."""
    return _SHOWN.get(key.key, key.key.replace("ctrl+", "^"))
