"""Lay out a lesson: paragraphs, headings and bullets in lines of a width.

No markup parser ever sees the text.
"""

import re
from collections.abc import Callable, Iterator

from textual.content import Content

from tuilab.catalogue.lesson import blocks
from tuilab.catalogue.stated_claims import key_of
from tuilab.text.wrapping import TIE, spans, tie_units

_MAX_WIDTH = 88  # columns; longer lines are hard to read
_LISTS = ("bullet", "item", "code")  # kinds of blocks that stay together
_INLINE = re.compile(
    r"`([^`\n]{1,300})`"
    r"|\*\*([^*\n]{1,300})\*\*"
    r"|(?<![A-Za-z0-9_*])\*([^*\s][^*\n]{0,300})\*(?![A-Za-z0-9_*])"
)
_INLINE_STYLES = {1: "$text-secondary", 2: "bold", 3: "italic"}  # by group of the pattern

Marker = Callable[[str], "tuple[Content, Content]"]
"""A function that returns the mark in the place of a bullet, and a text to follow the bullet."""


def lay_out(text: str, width: int, marker: Marker | None = None) -> list[Content]:
    """Return a text as lines of at most `width` cells; `marker` makes the marks of bullets."""
    width = max(min(width, _MAX_WIDTH), 8)
    lines: list[Content] = []
    previous = ""
    for kind, block_text in blocks(text):
        belongs_to_previous = kind == "note" or (kind in _LISTS and kind == previous)
        if lines and not belongs_to_previous:
            lines.append(Content(""))
        lines += _lay_out_block(kind, block_text, width, marker)
        if kind != "note":
            previous = kind
    return lines


def _lay_out_block(kind: str, text: str, width: int, marker: Marker | None) -> Iterator[Content]:
    """Yield the lines of a block; of a bullet, with the mark and the text of `marker`.

    `kind` is one of the kinds that `blocks` of `catalogue/lesson.py` returns.
    """
    match kind:
        case "code":
            code = Content.styled(f"  {text}", "$text-secondary")
            yield code.truncate(width, ellipsis=True)
        case "note":
            yield from _indented(Content.styled(text, "$text-muted"), width)
        case "text":
            yield from wrap_lines(inline(text), width)
        case "bullet":
            sign = Content.styled("•", "$primary")
            addition = Content("")
            if marker:
                sign, addition = marker(text)
            yield from hang(sign, _bullet(text), width)
            if addition:
                yield from _indented(addition, width)
        case _:
            yield from hang(Content.styled("▸", "$primary"), inline(text), width)


def _indented(text: Content, width: int) -> Iterator[Content]:
    for line in wrap_lines(text, width - 2):
        yield Content("  ") + line


def _bullet(text: str) -> Content:
    """Return a bullet. Its key, which few readers need, is muted."""
    key = key_of(text)
    if not key:
        return inline(text)
    sign = f"[{key}] "
    return Content.assemble((sign, "$text-muted"), inline(text.removeprefix(sign)))


def hang(sign: Content, text: Content, width: int) -> list[Content]:
    """Return wrapped lines behind a sign of one cell."""
    wrapped = wrap_lines(text, max(width - 2, 2))
    if not wrapped:
        wrapped = [Content("")]
    lines = [Content("").join([sign, Content(" "), wrapped[0]])]
    lines += [Content("  ") + line for line in wrapped[1:]]
    return lines


def wrap_lines(text: Content, width: int) -> list[Content]:
    """Return a text in lines of a width.

    Wide characters and units need rules of their own; Textual wraps all other texts.
    """
    width = max(width, 1)  # the terminal may be narrower than the frame around the text
    if tie_units(text.plain).isascii():
        return text.wrap(width)
    lines = []
    for line in text.split("\n"):
        line_spans = spans(line.plain, width)
        if not line_spans:
            line_spans = [(0, 0)]  # an empty line stays a line
        for start, end in line_spans:
            lines.append(_untied(line[start:end]))
    return lines


def together(text: Content) -> Content:
    """Return a text that is not wrapped at its spaces, so that a number stays with its mark."""
    return Content(text.plain.replace(" ", TIE), spans=list(text.spans))


def _untied(line: Content) -> Content:
    """Return a line with plain spaces in the place of the signs that tie words together."""
    if TIE not in line.plain:
        return line
    return Content(line.plain.replace(TIE, " "), spans=list(line.spans))


def heading(text: str) -> Content:
    """Return the heading of a section."""
    return Content.styled(text, "bold $text-accent")


def inline(text: str) -> Content:
    """Return one paragraph with its `code`, **strong** and *stressed* words styled."""
    parts: list[Content] = []
    start = 0
    for match in _INLINE.finditer(text):
        parts.append(Content(text[start : match.start()]))
        group = match.lastindex or 1  # the only group that has matched
        parts.append(Content.styled(match[group], _INLINE_STYLES[group]))
        start = match.end()
    parts.append(Content(text[start:]))
    return Content("").join(parts)
