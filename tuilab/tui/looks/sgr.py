"""The colours of printed output. Escape sequences of colours are used, all others are removed.

A colour becomes the nearest one of the theme, which is readable on its background.
"""

import re
from collections.abc import Iterable, Iterator

from rich.color import Color, ColorSystem
from textual.content import Content

from tuilab.text.display import show_lines

_SEQUENCE = re.compile(
    r"\x1b\[(?P<sgr>[0-9;:]*)m"
    r"|\x1b\[[0-?]*[ -/]*(?:[@-~]|$)"
    # strings for the terminal: titles, the clipboard, links
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)"
    r"|\x1b[ -/]*[0-~]?"
)
# The theme's names of the eight colours; white is the usual colour of text.
_NAMES = ("muted", "error", "success", "warning", "primary", "accent", "secondary", "")
_DEFAULT_COLOUR = 7
_ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",)}
_PART_COUNTS = {5: 1, 2: 3}  # numbers of an extended colour: 5 is one of 256, 2 is RGB
StyleWords = dict[str, None]
"""The words of a style, in their order."""


def coloured(lines: Iterable[str], style: str = "") -> Iterator[Content]:
    """Yield the lines in their colours, in `style` where they have none.

    A colour lasts until the next one, also in the following lines.
    """
    words: StyleWords = {}
    for line in lines:
        parts = []
        start = 0
        for match in _SEQUENCE.finditer(line):
            parts.append(_styled(line[start : match.start()], words, style))
            start = match.end()
            if match["sgr"] is not None:
                words = _apply(words, match["sgr"])
        parts.append(_styled(line[start:], words, style))
        yield Content("").join(parts)


def uncoloured(text: str) -> str:
    """Return a text without escape sequences."""
    return show_lines(_SEQUENCE.sub("", text))


def _styled(text: str, words: StyleWords, style: str) -> Content:
    return Content.styled(show_lines(text), " ".join(words) or style)


def _apply(words: StyleWords, parameters: str) -> StyleWords:
    """Return a style after the parameters of a sequence. Background colours are ignored."""
    numbers = [int(word[:4] or 0) for word in re.split("[;:]", parameters)]
    words = dict(words)
    while numbers:
        number = numbers.pop(0)
        if number == 0:
            words = {}
        elif number in (38, 48):
            colour = _take_extended_colour(numbers)
            if number == 38 and colour is not None:
                words = _with_colour(words, colour)
        elif number in _ATTRIBUTES:
            words[_ATTRIBUTES[number]] = None
        elif number in _ENDS:
            for word in _ENDS[number]:
                words.pop(word, None)
        elif 30 <= number <= 37 or 90 <= number <= 97:
            words = _with_colour(words, number % 10)
        elif number == 39:
            words = _with_colour(words, _DEFAULT_COLOUR)
    return words


def _take_extended_colour(numbers: list[int]) -> int | None:
    """Remove an extended colour from the numbers and return the nearest of the eight colours.

    Return None if it is not valid.
    """
    kind = numbers.pop(0) if numbers else 0
    count = 1 if kind == 5 else 3
    parts = numbers[:count]
    del numbers[:count]
    if len(parts) != _PART_COUNTS.get(kind) or any(not 0 <= part <= 255 for part in parts):
        return None
    colour = Color.from_ansi(parts[0]) if kind == 5 else Color.from_rgb(*parts)
    return (colour.downgrade(ColorSystem.STANDARD).number or 0) % 8


def _with_colour(words: StyleWords, colour: int) -> StyleWords:
    """Return a style with another colour; white removes the colour."""
    recoloured: StyleWords = {word: None for word in words if not word.startswith("$")}
    name = _NAMES[colour]
    if name:
        recoloured[f"$text-{name}"] = None
    return recoloured
