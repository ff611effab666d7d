"""Break text into lines of a width in cells.

A Chinese character takes two cells, and a line may end after any of them. No line ends between a
number and its unit.
"""

import os
import sys
from functools import lru_cache

_NO_LIMIT = 1_000_000  # cells
_DEFAULT_COLUMNS = 80  # of a terminal that does not report its width
_NOT_FIRST = "、，。；：！？）」』】》〉”’…,.;:!?)]}%"  # a line does not begin with these
_NOT_LAST = "（「『【《〈“‘([{"  # and does not end with these
# The blank between a number and its unit. Compiled on first use.
_UNIT = r"(?<=\d) (?=(?:%|°C|[nµm]?s|min|h|[KMGTPE]i?B|[kB]B?|[kMG]?Hz|[mk]?W)(?!\w))"
TIE = "\xa0"  # a blank at which no line ends


def terminal_width() -> int:
    """Return the width of the terminal in cells: COLUMNS, what the terminal reports, or 80.

    The result is that of `shutil.get_terminal_size`, whose module takes longer to load than `tuilab
    --help` may take.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    if not sys.__stdout__:
        return _DEFAULT_COLUMNS
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _DEFAULT_COLUMNS
    except (OSError, ValueError):
        return _DEFAULT_COLUMNS


def cell_width(text: str) -> int:
    """Return the number of cells of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def wrap(text: str, width: int, *, hang: str = "", keeps_words: bool = False) -> list[str]:
    """Return the lines of a paragraph; `hang` is before all lines but the first.

    With `keeps_words` a long word is not cut.
    """
    if text.isascii():
        return _wrap_ascii(text, width, hang, keeps_words)
    if "\n" in text:
        text = flow(text)
    lines: list[str] = []
    for start, end in spans(text, width, len(hang), keeps_words=keeps_words):
        line = text[start:end].rstrip()
        if lines:
            line = hang + line
        lines.append(line)
    return lines


def _wrap_ascii(text: str, width: int, hang: str, keeps_words: bool) -> list[str]:
    """Return the lines of a paragraph of ASCII. One that fits needs no textwrap, a slow import."""
    if len(text) <= width and " ".join(text.split()) == text:
        return [text] if text else []
    import textwrap  # imported here: most lines do not need it

    lines = textwrap.wrap(
        tie_units(text),
        width,
        subsequent_indent=hang,
        break_long_words=not keeps_words,
        break_on_hyphens=not keeps_words,
    )
    return [line.replace(TIE, " ") for line in lines]


def wrap_indented(line: str, width: int) -> list[str]:
    """Return a line, which may begin with blanks, as lines of a width.

    The lines after the first are indented by two more cells.
    """
    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    lines = wrap(text, max(width - len(indent), 20), hang="  ")
    return [indent + part for part in lines] or [""]


def tie_units(text: str) -> str:
    """Return a text with `TIE` between each number and its unit, so that no line ends there."""
    import re  # imported here: short lines do not need it

    return re.sub(_UNIT, TIE, text)


def has_units(text: str) -> bool:
    """Return whether a text has a number with a unit."""
    import re

    return re.search(_UNIT, text) is not None


def spans(
    text: str, width: int, hang: int = 0, *, keeps_words: bool = False
) -> list[tuple[int, int]]:
    """Return the begin and end of each line of a text.

    All lines but the first have `hang` cells less.
    """
    lines: list[tuple[int, int]] = []
    start = 0  # of the line
    end = 0
    cells = 0  # of the line so far
    max_cells = _NO_LIMIT if keeps_words else max(width - hang, 2)  # of a word that is not cut
    for piece in _pieces(tie_units(text), max_cells):
        if cells + cell_width(piece) > width and text[start:end].strip():
            lines.append((start, end))
            start = end
            cells = hang
        if lines and start == end:
            # blanks at the beginning of a line are not shown, however many there are
            blanks = len(piece) - len(piece.lstrip(" "))
            start += blanks
            cells -= blanks
        end += len(piece)
        cells += cell_width(piece)
    if text[start:end].strip():
        lines.append((start, end))
    return lines


def flow(text: str) -> str:
    """Return the lines of a paragraph as one.

    No blank replaces a line end between wide characters, except in Korean.
    """
    if text.isascii():
        return " ".join(text.split())
    joined = ""
    for line in text.splitlines():
        words = " ".join(line.split())
        if not words:
            continue
        if joined and not _needs_no_blank(joined[-1], words[0]):
            joined += " "
        joined += words
    return joined


def _needs_no_blank(previous: str, character: str) -> bool:
    if _is_korean(previous) or _is_korean(character) or _cells_of(previous) != 2:
        return False
    return _cells_of(character) == 2 or previous in _NOT_FIRST or previous in _NOT_LAST


def _is_korean(character: str) -> bool:
    return "\uac00" <= character <= "\ud7a3"


def _pieces(text: str, max_cells: int) -> list[str]:
    """Return the pieces of a text in which no line ends, of at most `max_cells` cells.

    A piece is a word with the blank before it, or a wide character with its marks.
    """
    pieces: list[str] = []
    for character in text:
        last = pieces[-1] if pieces else ""
        is_attached = last and _is_unbreakable(last[-1], character)
        if is_attached and cell_width(last) + _cells_of(character) <= max_cells:
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


def _is_unbreakable(previous: str, character: str) -> bool:
    """Return whether no line may end between two characters."""
    if character == " ":
        return False
    if not _cells_of(character):
        return True
    if _cells_of(previous) < 2 and _cells_of(character) < 2:  # both are in a word
        return True
    return previous == " " or character in _NOT_FIRST or previous in _NOT_LAST


@lru_cache(maxsize=4096)
def _cells_of(character: str) -> int:
    """Return the number of cells of a character: 0 for an accent, 2 for a wide one, else 1."""
    import unicodedata  # imported here: ASCII does not need it

    # accents, and the vowels of Thai that are above or below a consonant
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
