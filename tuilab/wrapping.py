"""Breaks text into lines of a width in cells: a character of Chinese takes two, and a line may end behind any of them."""

import textwrap
import unicodedata

_ANY = 1_000_000
_NOT_FIRST = "、，。；：！？）」』】》〉”’…,.;:!?)]}%"  # a line does not begin with these
_NOT_LAST = "（「『【《〈“‘([{"  # and does not end with these


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def wrap(text: str, width: int, *, hang: str = "", keeps_words: bool = False) -> list[str]:
    """Return the lines of a paragraph, those after the first behind `hang`; with `keeps_words` a long word is not cut."""
    if text.isascii():
        return textwrap.wrap(
            text, width, subsequent_indent=hang, break_long_words=not keeps_words, break_on_hyphens=not keeps_words
        )
    joined = flow(text)
    first, *rest = [joined[start:end] for start, end in spans(joined, width, len(hang), keeps_words=keeps_words)] or [""]
    return [first, *(hang + line for line in rest)] if first else []


def spans(text: str, width: int, hang: int = 0, *, keeps_words: bool = False) -> list[tuple[int, int]]:
    """Return where the lines of a text begin and end; those after the first have `hang` cells less."""
    found: list[tuple[int, int]] = []
    start = at = used = 0  # of the line; cells that it has
    for piece in _pieces(text, _ANY if keeps_words else max(width - hang, 2)):
        if used + cells(piece) > width and text[start:at].strip():
            found.append((start, at))
            blanks = len(piece) - len(piece.lstrip())  # are not shown
            start, used = at + blanks, hang - blanks
        at += len(piece)
        used += cells(piece)
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
    return _cells_of(before) == 2 and (_cells_of(character) == 2 or before in _NOT_FIRST or before in _NOT_LAST)


def _is_korean(character: str) -> bool:
    return "\uac00" <= character <= "\ud7a3"


def _pieces(text: str, most: int) -> list[str]:
    """Return what is not divided, of `most` cells at most: a word with the blank before it, a wide character with its marks."""
    pieces: list[str] = []
    for character in text:
        last = pieces[-1] if pieces else ""
        if last and _stays(last[-1], character) and cells(last) + _cells_of(character) <= most:
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


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):  # accents, and the vowels that Thai sets above and below
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
