"""Highlight Python source in a few styles. `tokenize` is enough for that."""

import io
import keyword
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from textual.content import Content

from tuilab.text.display import show_lines

_KEYWORD = "$text-primary"
_TEXT = "$text-success"
_COMMENT = "$text-muted italic"
_NUMBER = "$text-warning"
_NAME = "bold"
# The kinds of FSTRING exist from Python 3.12 on.
_STRINGS = {"STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END"}
_TAB = 4
_END_OF_LINE = 100_000


class StyledSpan(NamedTuple):
    """A styled piece of one line, counted from 0."""

    line: int
    start: int
    end: int
    style: str


def highlight(source: str) -> list[Content]:
    """Return the lines of a source. From the first syntax error on they are plain."""
    text = show_lines(source).expandtabs(_TAB)
    lines = [Content(line) for line in text.split("\n")]
    for line, start, end, style in _spans(text):
        if line < len(lines):
            lines[line] = lines[line].stylize(style, start, end)
    return lines


def _spans(text: str) -> Iterator[StyledSpan]:
    """Yield the pieces of a source that are not plain, up to the first syntax error."""
    previous = ""
    file = io.StringIO(text, newline="\n")
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(file.readline):
            style = _style(token, previous)
            if style:
                yield from _split_by_line(token, style)
            previous = token.string


def _style(token: tokenize.TokenInfo, previous: str) -> str:
    """Return the style of a token that follows another one; nothing for a plain token."""
    if token.type == tokenize.NAME:
        if keyword.iskeyword(token.string):
            return _KEYWORD
        if previous in ("def", "class"):
            return _NAME
        return ""
    if token.type == tokenize.COMMENT:
        return _COMMENT
    if token.type == tokenize.NUMBER:
        return _NUMBER
    if tokenize.tok_name[token.type] in _STRINGS:
        return _TEXT
    return ""


def _split_by_line(token: tokenize.TokenInfo, style: str) -> Iterator[StyledSpan]:
    """Yield the part of a token in each line that it covers."""
    first_line, first_column = token.start
    last_line, last_column = token.end
    for line in range(first_line, last_line + 1):
        start = first_column if line == first_line else 0
        end = last_column if line == last_line else _END_OF_LINE
        yield StyledSpan(line - 1, start, end, style)
