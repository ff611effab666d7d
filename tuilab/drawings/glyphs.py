"""The marks of verdicts and states, and how they look in a terminal with UTF-8 and colour, or without."""

import os
from dataclasses import dataclass
from typing import TextIO

from tuilab.text import is_utf8_terminal

_VERDICTS = {  # verdict -> (mark, plain mark, colour)
    "SUPPORTED": ("✓", "+", 32),
    "WEAKER THAN CLAIMED": ("≈", "~", 33),
    "NO MEANINGFUL DIFFERENCE": ("≈", "=", 33),
    "REFUTED": ("✗", "x", 31),
    "INCONCLUSIVE": ("?", "?", 33),
    "INVALID": ("!", "!", 31),
    "NOT TESTABLE HERE": ("–", "-", 2),
    "FAILED": ("!", "!", 31),
}
_ASCII = str.maketrans({"µ": "u", "…": "...", "–": "-", "—": "-", "×": "x", "“": '"', "”": '"', "’": "'", "·": "-", "²": "^2"})
_PENDING = ("…", ".", 2)


@dataclass(frozen=True)
class Style:
    """What the terminal can show."""

    is_utf8: bool = True
    has_colour: bool = False

    def mark(self, verdict: str) -> str:
        """Return the mark of a verdict; colour never carries it alone."""
        rich, plain, colour = _VERDICTS.get(verdict, _PENDING)
        return self.paint(rich if self.is_utf8 else plain, colour)

    def verdict(self, verdict: str, width: int = 0) -> str:
        """Return a verdict's name, padded and coloured."""
        return self.paint(verdict.ljust(width), _VERDICTS.get(verdict, _PENDING)[2])

    def paint(self, text: str, colour: int) -> str:
        """Return `text` in an ANSI colour, where there is colour."""
        return f"\x1b[{colour}m{text}\x1b[0m" if self.has_colour and text else text

    def bold(self, text: str) -> str:
        return self.paint(text, 1)

    def dim(self, text: str) -> str:
        return self.paint(text, 2)

    def fit(self, text: str) -> str:
        """Return `text` in characters that the terminal has."""
        if self.is_utf8:
            return text
        return text.translate(_ASCII).encode("ascii", "replace").decode()

    @property
    def dot(self) -> str:
        return "·" if self.is_utf8 else "-"


def style_of(stream: TextIO) -> Style:
    """Return what a stream's terminal can show."""
    is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    return Style(is_utf8=is_utf8_terminal(), has_colour=is_terminal and not os.environ.get("NO_COLOR"))
