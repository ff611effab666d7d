"""Lays out a lesson for reading: paragraphs, headings and bullets in lines of a width. No markup parser ever sees the text."""

import re
from collections.abc import Callable, Iterator

from textual.content import Content

from tuilab.catalogue.lesson import blocks
from tuilab.catalogue.stated_claims import key_of
from tuilab.text.wrapping import TIE, spans, tie_units

_WIDEST = 88  # columns that are pleasant to read
_SPAN = re.compile(
    r"`([^`\n]{1,300})`|\*\*([^*\n]{1,300})\*\*|(?<![A-Za-z0-9_*])\*([^*\s][^*\n]{0,300})\*(?![A-Za-z0-9_*])"
)
_STYLES = ("$text-secondary", "bold", "italic")

Marker = Callable[
    [str], "tuple[Content, Content]"
]  # the mark in the place of a bullet, and what follows the text


def lay_out(text: str, width: int, marker: Marker | None = None) -> list[Content]:
    """Return a text as lines of at most `width` cells; `marker` says what stands in the place of a bullet."""
    width = max(min(width, _WIDEST), 8)
    lines: list[Content] = []
    before = ""
    for kind, words in blocks(text):
        if lines and kind != "note" and not (kind in ("bullet", "item", "code") and kind == before):
            lines.append(Content(""))
        lines += _lay_out_block(kind, words, width, marker)
        before = before if kind == "note" else kind
    return lines


def _lay_out_block(kind: str, text: str, width: int, marker: Marker | None) -> Iterator[Content]:
    if kind == "code":
        yield Content.styled(f"  {text}", "$text-secondary").truncate(width, ellipsis=True)
        return
    if kind == "note":
        yield from (
            Content("  ") + line
            for line in wrap_lines(Content.styled(text, "$text-muted"), width - 2)
        )
        return
    if kind == "text":
        yield from wrap_lines(inline(text), width)
        return
    sign, after = Content.styled("•" if kind == "bullet" else "▸", "$primary"), Content("")
    if marker and kind == "bullet":
        sign, after = marker(text)
    yield from hang(sign, _claim(text) if kind == "bullet" else inline(text), width)
    for line in wrap_lines(after, width - 2) if after else ():
        yield Content("  ") + line


def _claim(bullet: str) -> Content:
    """Return a bullet with its key, which is for those who look for it, in the background."""
    key = key_of(bullet)
    return (
        Content.assemble((f"[{key}] ", "$text-muted"), inline(bullet.removeprefix(f"[{key}] ")))
        if key
        else inline(bullet)
    )


def hang(sign: Content, text: Content, width: int) -> list[Content]:
    """Return wrapped lines behind a sign of one cell."""
    first, *rest = wrap_lines(text, max(width - 2, 2)) or [Content("")]
    return [Content("").join([sign, Content(" "), first]), *(Content("  ") + line for line in rest)]


def wrap_lines(text: Content, width: int) -> list[Content]:
    """Return a text in lines of a width; where wide characters or units are in it, it is broken as those are read."""
    width = max(width, 1)  # a terminal may be narrower than what stands around the text
    if tie_units(text.plain).isascii():
        return text.wrap(width)
    return [
        _untied(line[start:end])
        for line in text.split("\n")
        for start, end in spans(line.plain, width) or [(0, 0)]
    ]


def together(text: Content) -> Content:
    """Return a text at whose blanks no line ends where it is folded: neither behind a mark nor before a number."""
    return Content(text.plain.replace(" ", TIE), spans=list(text.spans))


def _untied(line: Content) -> Content:
    return (
        Content(line.plain.replace(TIE, " "), spans=list(line.spans)) if TIE in line.plain else line
    )


def heading(text: str) -> Content:
    """Return the heading of a section."""
    return Content.styled(text, "bold $text-accent")


def inline(text: str) -> Content:
    """Return one paragraph with its `code`, **strong** and *stressed* words styled."""
    parts: list[Content] = []
    at = 0
    for found in _SPAN.finditer(text):
        kind = next(kind for kind in (1, 2, 3) if found[kind])
        parts += [Content(text[at : found.start()]), Content.styled(found[kind], _STYLES[kind - 1])]
        at = found.end()
    return Content("").join([*parts, Content(text[at:])])
