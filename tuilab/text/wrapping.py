"""Breaks text into lines of a width in cells: a character of Chinese takes two, and a line may end behind any of them.

No line ends between a number and its unit.
"""

import os
import sys
from functools import lru_cache

_ANY = 1_000_000
_COLUMNS = 80  # of a terminal that does not tell
_NOT_FIRST = "、，。；：！？）」』】》〉”’…,.;:!?)]}%"  # a line does not begin with these
_UNIT = r"(?<=\d) (?=(?:%|°C|[nµm]?s|min|h|[KMGTPE]i?B|[kB]B?|[kMG]?Hz|[mk]?W)(?!\w))"  # compiled where a line is wrapped
TIE = "\xa0"  # a blank at which no line ends
_NOT_LAST = "（「『【《〈“‘([{"  # and does not end with these


def terminal_width() -> int:
    """Return how wide the terminal is, as shutil does, which takes longer to load than `tuilab --help` may take."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return (
            os.get_terminal_size(sys.__stdout__.fileno()).columns or _COLUMNS
            if sys.__stdout__
            else _COLUMNS
        )
    except (OSError, ValueError):
        return _COLUMNS


def cell_width(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def wrap(text: str, width: int, *, hang: str = "", keeps_words: bool = False) -> list[str]:
    """Return the lines of a paragraph, those after the first behind `hang`; with `keeps_words` a long word is not cut."""
    if text.isascii():
        if len(text) <= width and " ".join(text.split()) == text:
            return [text] if text else []
        import textwrap  # most lines do not need it

        is_free = not keeps_words
        plain = textwrap.wrap(
            tied(text),
            width,
            subsequent_indent=hang,
            break_long_words=is_free,
            break_on_hyphens=is_free,
        )
        return [line.replace(TIE, " ") for line in plain]
    joined = flow(text) if "\n" in text else text
    lines = spans(joined, width, len(hang), keeps_words=keeps_words)
    first, *rest = [joined[start:end].rstrip() for start, end in lines] or [""]
    return [first, *(hang + line for line in rest)] if first else []


def hung(line: str, width: int) -> list[str]:
    """Return a line, which may begin with blanks, as lines of a width; those after the first begin two cells further in."""
    inner = line.lstrip(" ")
    indent = line[: len(line) - len(inner)]
    return [indent + part for part in wrap(inner, max(width - len(indent), 20), hang="  ")] or [""]


def tied(text: str) -> str:
    """Return a text with a blank between each number and its unit at which no line ends."""
    import re  # is not needed for lines that are short

    return re.sub(_UNIT, TIE, text)


def has_units(text: str) -> bool:
    """Say whether a number stands before its unit in a text."""
    import re

    return re.search(_UNIT, text) is not None


def spans(
    text: str, width: int, hang: int = 0, *, keeps_words: bool = False
) -> list[tuple[int, int]]:
    """Return where the lines of a text begin and end; those after the first have `hang` cells less."""
    found: list[tuple[int, int]] = []
    start = at = used = 0  # of the line; cells that it has
    for piece in _pieces(tied(text), _ANY if keeps_words else max(width - hang, 2)):
        if used + cell_width(piece) > width and text[start:at].strip():
            found.append((start, at))
            start, used = at, hang
        if found and start == at:
            blanks = len(piece) - len(
                piece.lstrip(" ")
            )  # are not shown, however many a line would begin with
            start, used = at + blanks, used - blanks
        at += len(piece)
        used += cell_width(piece)
    return [*found, (start, at)] if text[start:at].strip() else found


def flow(text: str) -> str:
    """Return the lines of a paragraph as one; between wide characters no blank stands where a line ended, but in Korean."""
    if text.isascii():
        return " ".join(text.split())
    joined = ""
    for line in (" ".join(words) for words in map(str.split, text.splitlines()) if words):
        joined += line if not joined or _needs_no_blank(joined[-1], line[0]) else f" {line}"
    return joined


def _needs_no_blank(before: str, character: str) -> bool:
    if _is_korean(before) or _is_korean(character):
        return False
    return _cells_of(before) == 2 and (
        _cells_of(character) == 2 or before in _NOT_FIRST or before in _NOT_LAST
    )


def _is_korean(character: str) -> bool:
    return "\uac00" <= character <= "\ud7a3"


def _pieces(text: str, most: int) -> list[str]:
    """Return what is not divided, of `most` cells at most: a word with the blank before it, a wide character with its marks."""
    pieces: list[str] = []
    for character in text:
        last = pieces[-1] if pieces else ""
        if last and _stays(last[-1], character) and cell_width(last) + _cells_of(character) <= most:
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


def _stays(before: str, character: str) -> bool:
    """Say whether no line may end between two characters."""
    if character == " ":
        return False
    if not _cells_of(character):
        return True
    is_word = _cells_of(before) < 2 and _cells_of(character) < 2
    return is_word or before == " " or character in _NOT_FIRST or before in _NOT_LAST


@lru_cache(maxsize=4096)
def _cells_of(character: str) -> int:
    import unicodedata  # is not needed for ASCII

    if unicodedata.category(character) in (
        "Mn",
        "Me",
    ):  # accents, and the vowels that Thai sets above and below
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
