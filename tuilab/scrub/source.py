"""Remove secrets from Python source so that it still parses.

It changes only the inside of quoted texts, comments, and numbers. Expressions stay:
`RuntimeError("password=" + reason)` holds no secret, although it looks like one.
"""

import ast
import io
import tokenize
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from tuilab.scrub.named_values import named_values, starts_of_lines
from tuilab.text.display import GONE

Clean = Callable[[str], str]

_MIN_LENGTH = 4  # characters of a part of an f-string that may be a part of a secret
_SCHEMES = frozenset({"basic", "bearer", "token"})  # words before the secret in a header
# From Python 3.12 on, an f-string is several tokens.
_FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
_FSTRING_END = getattr(tokenize, "FSTRING_END", -1)


class _Piece(NamedTuple):
    """The place of a text, a comment or a number in a source."""

    begin: int
    end: int
    kind: int  # of its token


def clean_source(source: str, clean: Clean) -> str | None:
    """Return Python source whose texts, comments and numbers `clean` has cleaned.

    None if it does not parse, before or after that.
    """
    if source.startswith("\ufeff"):  # a byte order mark
        cleaned_rest = clean_source(source[1:], clean)
        if cleaned_rest is None:
            return None
        return "\ufeff" + cleaned_rest
    if not _parses(source):
        return None
    named_places = sorted(named_values(source))
    parts: list[str] = []
    end = 0
    for piece in _pieces(source):
        is_named = _is_within(piece, named_places)
        text = source[piece.begin : piece.end]
        parts.append(source[end : piece.begin])
        parts.append(_clean_piece(text, piece.kind, clean, is_named=is_named))
        end = piece.end
    parts.append(source[end:])
    cleaned = "".join(parts)
    if cleaned != source and not _parses(cleaned):
        return None
    return cleaned


def _is_within(piece: _Piece, places: Sequence[tuple[int, int]]) -> bool:
    """Return whether a piece lies within one of some places, which are sorted and apart."""
    index = bisect_right(places, piece.begin, key=itemgetter(0))
    return index > 0 and piece.end <= places[index - 1][1]


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _pieces(source: str) -> Iterator[_Piece]:
    """Yield the texts, comments and numbers of a source in order; an f-string is one piece."""
    starts = starts_of_lines(source)
    depth = 0  # of f-strings within each other
    fstring_begin = 0
    for token in tokenize.generate_tokens(io.StringIO(source, newline="").readline):
        begin = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        if token.type == _FSTRING_START:
            if depth == 0:
                fstring_begin = begin
            depth += 1
        elif token.type == _FSTRING_END:
            depth -= 1
            if depth == 0:
                yield _Piece(fstring_begin, end, tokenize.STRING)
        elif depth == 0 and token.type in (tokenize.STRING, tokenize.COMMENT, tokenize.NUMBER):
            yield _Piece(begin, end, token.type)


def _clean_piece(text: str, kind: int, clean: Clean, *, is_named: bool) -> str:
    if kind == tokenize.COMMENT:
        cleaned = clean(text)
        is_comment = cleaned.startswith("#") and "\n" not in cleaned and "\r" not in cleaned
        if not is_comment:
            return f"# {GONE}"
        return cleaned
    if kind == tokenize.NUMBER:
        if is_named or clean(text) != text:
            return GONE  # it parses in the place of a number: it is a name in brackets
        return text
    return _clean_text(text, clean, is_named=is_named)


def _clean_text(text: str, clean: Clean, *, is_named: bool) -> str:
    """Return a quoted text without secrets; the expressions of an f-string stay."""
    quote = _quote_of(text)
    opening = text[: text.index(quote) + len(quote)]
    inner = text[len(opening) : -len(quote)]
    parts = [(inner, False)]
    if "f" in opening.lower():
        parts = list(_split_fstring(inner))
    has_expressions = any(is_expression for _, is_expression in parts)
    cleaned_parts = []
    for part, is_expression in parts:
        if is_expression:
            cleaned_parts.append(part)
        elif is_named and (not has_expressions or _may_be_secret(part)):
            cleaned_parts.append(GONE)
        else:
            cleaned_parts.append(clean(part))
    cleaned = "".join(cleaned_parts)
    if cleaned == inner:
        return text
    quoted = f"{opening}{cleaned}{quote}"
    if _parses(f"({quoted})"):
        return quoted
    return f"{opening}{GONE}{quote}"  # the cleaned text was cut within an escape


def _quote_of(text: str) -> str:
    """Return the quote that a text ends with: three characters, or one."""
    is_triple = len(text) >= 6 and text.endswith(('"""', "'''"))
    return text[-3:] if is_triple else text[-1:]


def _may_be_secret(part: str) -> bool:
    """Return whether a text between the expressions of an f-string may be a part of a secret."""
    word = part.strip()
    return len(word) >= _MIN_LENGTH and word.casefold() not in _SCHEMES


def _split_fstring(inner: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of an f-string, each with whether it is an expression in its braces."""
    position = 0
    begin = 0  # of the part
    depth = 0  # of braces
    while position < len(inner):
        if depth == 0 and inner[position : position + 2] in ("{{", "}}"):  # escaped braces
            position += 2
            continue
        if inner[position] == "{":
            if depth == 0:
                yield inner[begin:position], False
                begin = position
            depth += 1
        elif inner[position] == "}" and depth:
            depth -= 1
            if depth == 0:
                yield inner[begin : position + 1], True
                begin = position + 1
        position += 1
    is_unfinished = depth > 0
    yield inner[begin:], is_unfinished
