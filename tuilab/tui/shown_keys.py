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
_IN_A_TEXT = {"space", "left", "right", "shift+left", "shift+right", "home", "end"}


def keys_at(
    places: Sequence[str], *, is_typing: bool = False, is_read_only: bool = False
) -> list[Key]:
    """Return the keys of some places, and those that work everywhere.

    If several places have a key, the entry of the first place counts. While the user types, keys
    that a line of text takes are left out. In read-only mode, keys that change something are left
    out.
    """
    first_entries: dict[str, Key] = {}
    for place in (*places, "everywhere"):
        for key in KEYS[place]:
            first_entries.setdefault(key.key, key)
    keys = []
    for key in first_entries.values():
        if is_typing and is_typed(key):
            continue
        if not is_typing and key.key == "f1":
            continue  # `?` does the same, and is shown instead
        if is_read_only and changes(key, places):
            continue
        keys.append(key)
    return keys


def changes(key: Key, places: Sequence[str]) -> bool:
    """Return whether a key changes something.

    An entry without an action only describes its key. Its action is then that of the first entry
    with an action for the same key in these places, or everywhere.
    """
    if key.action:
        return is_change(key.action)
    for place in (*places, "everywhere"):
        for entry in KEYS[place]:
            if entry.key == key.key and entry.action:
                return is_change(entry.action)
    return False


def is_change(action: str) -> bool:
    """Return whether an action changes something, as `write('note')` does."""
    call, _, _ = action.partition("(")
    _, _, name = call.rpartition(".")
    return name in CHANGES


def is_typed(key: Key) -> bool:
    """Return whether a line of text takes the key itself."""
    return key.key in _IN_A_TEXT or (len(shown(key)) == 1 and shown(key).isascii())


def shown(key: Key) -> str:
    """Return the name of a key as the user sees it."""
    return _SHOWN.get(key.key, key.key.replace("ctrl+", "^"))
