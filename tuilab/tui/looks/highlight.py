"""Colours Python source with the few styles that help reading; made of `tokenize`, which knows all that is needed."""

import io
import keyword
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from textual.content import Content

from tuilab.text.display import show_lines

_KEYWORD, _TEXT, _COMMENT, _NUMBER, _NAME = (
    "$text-primary",
    "$text-success",
    "$text-muted italic",
    "$text-warning",
    "bold",
)
_STRINGS = {
    "STRING",
    "FSTRING_START",
    "FSTRING_MIDDLE",
    "FSTRING_END",
}  # the latter from Python 3.12 on
_TAB = 4


class StyledSpan(NamedTuple):
    """A styled piece of one line, counted from 0."""

    line: int
    start: int
    end: int
    style: str


def highlight(source: str) -> list[Content]:
    """Return the lines of a source; what cannot be read as Python stays plain from there on."""
    text = show_lines(source).expandtabs(_TAB)
    lines = [Content(line) for line in text.split("\n")]
    for line, start, end, style in _spans(text):
        if line < len(lines):
            lines[line] = lines[line].stylize(style, start, end)
    return lines


def _spans(text: str) -> Iterator[StyledSpan]:
    before = ""
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if style := _style(token, before):
                yield from _cut(token, style)
            before = token.string


def _style(token: tokenize.TokenInfo, before: str) -> str:
    if token.type == tokenize.NAME:
        return (
            _KEYWORD
            if keyword.iskeyword(token.string)
            else _NAME
            if before in ("def", "class")
            else ""
        )
    if token.type == tokenize.COMMENT:
        return _COMMENT
    if token.type == tokenize.NUMBER:
        return _NUMBER
    return _TEXT if tokenize.tok_name[token.type] in _STRINGS else ""


def _cut(token: tokenize.TokenInfo, style: str) -> Iterator[StyledSpan]:
    """Yield the piece of each line that a token covers."""
    (first, start), (last, end) = token.start, token.end
    for line in range(first, last + 1):
        yield StyledSpan(
            line - 1, start if line == first else 0, end if line == last else 100_000, style
        )
