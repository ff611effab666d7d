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
# The first number of an extended colour says whether it is one of 256 colours, or RGB.
_ONE_OF_256 = 5
_RGB = 2
TextStyle = dict[str, None]
"""The parts of a style, such as `bold` or `$text-error`, in their order."""


def coloured(lines: Iterable[str], default_style: str = "") -> Iterator[Content]:
    """Yield the lines in their colours, in the default style where they have none.

    A colour lasts until the next one, also in the following lines.
    """
    style: TextStyle = {}
    for line in lines:
        parts = []
        start = 0
        for match in _SEQUENCE.finditer(line):
            parts.append(_styled(line[start : match.start()], style, default_style))
            start = match.end()
            if match["sgr"] is not None:
                style = _apply(style, match["sgr"])
        parts.append(_styled(line[start:], style, default_style))
        yield Content("").join(parts)


def uncoloured(text: str) -> str:
    """Return a text without escape sequences."""
    return show_lines(_SEQUENCE.sub("", text))


def _styled(text: str, style: TextStyle, default_style: str) -> Content:
    return Content.styled(show_lines(text), " ".join(style) or default_style)


def _apply(style: TextStyle, parameters: str) -> TextStyle:
    """Return a style after the parameters of a sequence. Background colours are ignored."""
    numbers = []
    for parameter in re.split("[;:]", parameters):
        numbers.append(int(parameter[:4] or 0))  # an empty parameter means 0
    style = dict(style)
    while numbers:
        number = numbers.pop(0)
        if number == 0:
            style = {}
        elif number in (38, 48):  # an extended colour of the text, or of the background
            colour = _take_extended_colour(numbers)
            if number == 38 and colour is not None:
                style = _with_colour(style, colour)
        elif number in _ATTRIBUTES:
            style[_ATTRIBUTES[number]] = None
        elif number in _ENDS:
            for attribute in _ENDS[number]:
                style.pop(attribute, None)
        elif 30 <= number <= 37 or 90 <= number <= 97:
            style = _with_colour(style, number % 10)
        elif number == 39:
            style = _with_colour(style, _DEFAULT_COLOUR)
    return style


def _take_extended_colour(numbers: list[int]) -> int | None:
    """Remove an extended colour from the numbers and return the nearest of the eight colours.

    Return None if it is not valid.
    """
    if not numbers:
        return None
    kind = numbers.pop(0)
    part_count = 1 if kind == _ONE_OF_256 else 3
    parts = numbers[:part_count]
    del numbers[:part_count]
    if kind not in (_ONE_OF_256, _RGB) or len(parts) < part_count or max(parts) > 255:
        return None
    if kind == _ONE_OF_256:
        colour = Color.from_ansi(parts[0])
    else:
        colour = Color.from_rgb(*parts)
    nearest = colour.downgrade(ColorSystem.STANDARD).number or 0
    return nearest % 8  # 8 to 15 are the bright variants of the eight colours


def _with_colour(style: TextStyle, colour: int) -> TextStyle:
    """Return a style with another colour; white removes the colour."""
    recoloured: TextStyle = {}
    for part in style:
        if not part.startswith("$"):
            recoloured[part] = None
    name = _NAMES[colour]
    if name:
        recoloured[f"$text-{name}"] = None
    return recoloured
