"""Takes secrets out of Python source so that it still parses: only inside the quotes of texts, in comments, and in numbers.

What is an expression stays: `RuntimeError("password=" + reason)` holds no secret, however it reads.
"""

import ast
import io
import tokenize
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tuilab.scrub.named_values import named_values, starts_of_lines
from tuilab.text.display import GONE

Clean = Callable[[str], str]

_SHORTEST = 4  # characters of a part of an f-string that may be a part of a secret
_SCHEMES = frozenset({"basic", "bearer", "token"})  # words in front of what a header holds
_FSTRING_START = getattr(
    tokenize, "FSTRING_START", -1
)  # from Python 3.12 on an f-string is several tokens
_FSTRING_END = getattr(tokenize, "FSTRING_END", -1)


class _Piece(NamedTuple):
    """A text, a comment or a number of a source, from where to where it stands."""

    begin: int
    end: int
    kind: int


def clean_source(source: str, clean: Clean) -> str | None:
    """Return Python source without what `clean` takes out of texts; None if it is no Python, or would not parse then."""
    if source.startswith("\ufeff"):
        cleaned_rest = clean_source(source[1:], clean)
        return None if cleaned_rest is None else "\ufeff" + cleaned_rest
    if not _parses(source):
        return None
    named = named_values(source)
    kept: list[str] = []
    at = 0
    for piece in _pieces(source):
        kept.append(source[at : piece.begin])
        is_named = any(begin <= piece.begin and piece.end <= end for begin, end in named)
        kept.append(
            _clean_piece(source[piece.begin : piece.end], piece.kind, clean, is_named=is_named)
        )
        at = piece.end
    cleaned = "".join([*kept, source[at:]])
    return cleaned if cleaned == source or _parses(cleaned) else None


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _pieces(source: str) -> Iterator[_Piece]:
    """Yield the texts, comments and numbers of a source in their order; an f-string is one piece."""
    starts = starts_of_lines(source)
    depth = 0  # of f-strings within each other
    begin = 0
    for token in tokenize.generate_tokens(io.StringIO(source, newline="").readline):
        first = starts[token.start[0] - 1] + token.start[1]
        last = starts[token.end[0] - 1] + token.end[1]
        if token.type == _FSTRING_START:
            begin = begin if depth else first
            depth += 1
            continue
        if token.type == _FSTRING_END:
            depth -= 1
            if depth == 0:
                yield _Piece(begin, last, tokenize.STRING)
            continue
        if depth:
            continue
        if token.type in (tokenize.STRING, tokenize.COMMENT, tokenize.NUMBER):
            yield _Piece(first, last, token.type)


def _clean_piece(text: str, kind: int, clean: Clean, *, is_named: bool) -> str:
    if kind == tokenize.COMMENT:
        cleaned = clean(text)
        is_comment = cleaned.startswith("#") and "\n" not in cleaned and "\r" not in cleaned
        return cleaned if is_comment else f"# {GONE}"
    if kind == tokenize.NUMBER:
        return GONE if is_named or clean(text) != text else text  # which is a name in brackets
    return _clean_text(text, clean, is_named=is_named)


def _quote_of(text: str) -> str:
    """Return the quote that a text ends with: three, or one."""
    return text[-3:] if text[-3:] in ('"""', "'''") and len(text) >= 6 else text[-1:]


def _clean_text(text: str, clean: Clean, *, is_named: bool) -> str:
    """Return a text in its quotes without secrets; what an f-string computes stays."""
    quote = _quote_of(text)
    opening = text[: text.index(quote) + len(quote)]
    inner = text[len(opening) : -len(quote)]
    is_computed = "f" in opening.lower()
    parts = list(_parts_of(inner)) if is_computed else [(inner, False)]
    has_expressions = any(is_expression for _, is_expression in parts)
    cleaned = []
    for part, is_expression in parts:
        if is_expression:
            cleaned.append(part)
        elif is_named and (not has_expressions or _may_be_secret(part)):
            cleaned.append(GONE)
        else:
            cleaned.append(clean(part))
    whole = "".join(cleaned)
    if whole == inner:
        return text
    written = f"{opening}{whole}{quote}"
    return (
        written if _parses(f"({written})") else f"{opening}{GONE}{quote}"
    )  # it was cut within an escape


def _may_be_secret(part: str) -> bool:
    """Return whether what stands between the expressions of an f-string may be a part of a secret."""
    word = part.strip()
    return len(word) >= _SHORTEST and word.casefold() not in _SCHEMES


def _parts_of(inner: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of an f-string in their order, each with whether it is an expression in its braces."""
    at = begin = depth = 0
    while at < len(inner):
        if depth == 0 and inner[at : at + 2] in ("{{", "}}"):
            at += 2
            continue
        if inner[at] == "{":
            if depth == 0:
                yield inner[begin:at], False
                begin = at
            depth += 1
        elif inner[at] == "}" and depth:
            depth -= 1
            if depth == 0:
                yield inner[begin : at + 1], True
                begin = at + 1
        at += 1
    yield inner[begin:], bool(depth)
