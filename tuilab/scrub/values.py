"""The values of this process's secret variables, and where they stand in a text: plain, URL-encoded or in base64."""

import base64
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

from tuilab.scrub.forms import is_opaque
from tuilab.scrub.names import is_place, is_secret
from tuilab.scrub.secrecy import is_harmless, is_word_of_model
from tuilab.text.display import GONE

_SHORTEST = 6  # characters; a shorter value stands in ordinary text as well
_WORD_LIMIT = 12  # characters; a shorter value of letters alone, or of digits, is only removed as a whole word
_MOST_PLACES = 1000  # that are kept of one log
_LOGIN = re.compile(r"://(?P<user>[^/\s:@]*):?(?P<password>[^\s]*)@")
_PIECES = re.compile(r"[\s:;,|&=\"'{}()<>@]+")


def secret_values(environ: Mapping[str, str]) -> set[str]:
    """Return the values of secret variables, their pieces that are secrets by themselves, and passwords in addresses."""
    found: set[str] = set()
    for name, value in environ.items():
        if _is_hiding(name, value):
            found.update(pieces(value))
        found.update(_logins(value))
    return found


def remover(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that removes the secrets of an environment from a text."""
    return removing(secret_values(environ))


def removing(values: Collection[str]) -> Callable[[str], str]:
    """Return a function that removes some values from a text, in each of their spellings."""
    patterns = _patterns(values)

    def remove(text: str) -> str:
        for spelling, pattern in patterns:
            if spelling in text:
                text = pattern.sub(GONE, text)
        return text

    return remove


def places_in(text: str, values: Collection[str]) -> list[tuple[int, int]]:
    """Return from where to where some values stand in a text; if the places are many, one place for all."""
    spans: list[tuple[int, int]] = []
    for spelling, pattern in _patterns(values):
        if spelling in text:
            spans += [found.span() for found in pattern.finditer(text)]
    places: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if places and begin <= places[-1][1]:
            places[-1] = places[-1][0], max(places[-1][1], end)
        else:
            places.append((begin, end))
    return places if len(places) <= _MOST_PLACES else [(places[0][0], places[-1][1])]


def pieces(value: str) -> Iterator[str]:
    """Yield a secret, and the parts of it that look like secrets by themselves."""
    text = value.strip()
    if len(text) >= _SHORTEST:
        yield text
    yield from (piece for piece in _PIECES.split(text) if len(piece) >= 8 and is_opaque(piece))


def _is_hiding(name: str, value: str) -> bool:
    text = value.strip()
    is_path = is_place(name) and text.startswith(("/", "~", "."))
    return (
        is_secret(name)
        and not is_path
        and not is_harmless(name, text)
        and not is_word_of_model(name, text)
    )


def _logins(value: str) -> Iterator[str]:
    """Yield the passwords in an address, else the users, as they are written and as they are typed."""
    for found in _LOGIN.finditer(value):
        secret = found["password"] or found["user"]
        for text in (secret, unquote(secret, errors="surrogateescape")):
            if len(text) >= _SHORTEST:
                yield text


def _patterns(values: Collection[str]) -> list[tuple[str, re.Pattern[str]]]:
    """Return each spelling of some values with its pattern, the longest first."""
    spellings = {spelling for value in values for spelling in _spellings(value)}
    return [
        (spelling, re.compile(_pattern(spelling)))
        for spelling in sorted(spellings, key=len, reverse=True)
    ]


def _spellings(value: str) -> Iterator[str]:
    """Yield a value as it is spelled in texts."""
    data = os.fsencode(value)
    yield from (value, quote(data, ""), quote(data), quote_plus(data))
    for coded in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
        yield from (coded, coded.rstrip("="))


def _pattern(spelling: str) -> str:
    if len(spelling) < _WORD_LIMIT and re.fullmatch(r"[A-Za-z]?[a-z]+|[A-Z]+|\d+", spelling):
        return rf"(?<![^\W_]){re.escape(spelling)}(?![^\W_])"
    return re.escape(spelling)
