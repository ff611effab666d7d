"""The colours of what a run printed: of escape sequences, those that colour are heeded, all others are taken out.

A colour becomes the nearest one of the theme, which can be read on its ground.
"""

import re
from collections.abc import Iterable, Iterator

from rich.color import Color, ColorSystem
from textual.content import Content

from tuilab.text.display import show_lines

_SEQUENCE = re.compile(
    r"\x1b\[(?P<sgr>[0-9;:]*)m"
    r"|\x1b\[[0-?]*[ -/]*(?:[@-~]|$)"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)"  # strings for the terminal: titles, the clipboard, links
    r"|\x1b[ -/]*[0-~]?"
)
_NAMES = (
    "muted",
    "error",
    "success",
    "warning",
    "primary",
    "accent",
    "secondary",
    "",
)  # of the eight colours
_ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",)}
Look = dict[str, None]  # the words of a style


def coloured(lines: Iterable[str], style: str = "") -> Iterator[Content]:
    """Yield lines as they are shown; a colour lasts until another one comes, on the next lines, too."""
    look: Look = {}
    for line in lines:
        parts, at = [], 0
        for found in _SEQUENCE.finditer(line):
            parts.append(_part(line[at : found.start()], look, style))
            at = found.end()
            if found["sgr"] is not None:
                look = _heed(look, found["sgr"])
        yield Content("").join([*parts, _part(line[at:], look, style)])


def uncoloured(text: str) -> str:
    """Return a text without any sequence."""
    return show_lines(_SEQUENCE.sub("", text))


def _part(text: str, look: Look, style: str) -> Content:
    return Content.styled(show_lines(text), " ".join(look) or style)


def _heed(look: Look, parameters: str) -> Look:
    """Return a look after these parameters; those of the ground behind the text change nothing."""
    numbers = [int(word[:4] or 0) for word in re.split("[;:]", parameters)]
    look = dict(look)
    while numbers:
        number = numbers.pop(0)
        if number == 0:
            look = {}
        elif number in (38, 48):
            colour = _extended(numbers)
            look = _painted(look, colour) if number == 38 and colour is not None else look
        elif number in _ATTRIBUTES:
            look[_ATTRIBUTES[number]] = None
        elif number in _ENDS:
            for word in _ENDS[number]:
                look.pop(word, None)
        elif 30 <= number <= 37 or 90 <= number <= 97:
            look = _painted(look, number % 10)
        elif number == 39:
            look = _painted(look, 7)
    return look


def _extended(numbers: list[int]) -> int | None:
    """Take the rest of a colour of 256, or of three parts, and return the nearest of the eight."""
    kind = numbers.pop(0) if numbers else 0
    taken, numbers[:] = (numbers[:1], numbers[1:]) if kind == 5 else (numbers[:3], numbers[3:])
    if any(not 0 <= part <= 255 for part in taken) or len(taken) != {5: 1, 2: 3}.get(kind):
        return None
    colour = Color.from_ansi(taken[0]) if kind == 5 else Color.from_rgb(*taken)
    return (colour.downgrade(ColorSystem.STANDARD).number or 0) % 8


def _painted(look: Look, colour: int) -> Look:
    name = _NAMES[colour]
    kept = {word: None for word in look if not word.startswith("$")}
    return {**kept, f"$text-{name}": None} if name else kept
