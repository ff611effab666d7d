"""Find the values of this process's secret variables in a text: plain, URL-encoded or in base64."""

import base64
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

from tuilab.scrub.forms import is_opaque
from tuilab.scrub.names import is_place, is_secret
from tuilab.scrub.secrecy import is_harmless, is_word_of_model
from tuilab.text.display import GONE

_MIN_LENGTH = 6  # characters; a shorter value also occurs in ordinary text
_MIN_PART_LENGTH = 8  # characters of a part that is removed by itself
# A shorter value that has only letters or only digits is removed only as a whole word.
_WORD_LIMIT = 12  # characters
_MAX_PLACES = 1000  # in one log
_LOGIN = re.compile(r"://(?P<user>[^/\s:@]*):?(?P<password>[^\s]*)@")
_SEPARATORS = re.compile(r"[\s:;,|&=\"'{}()<>@]+")


def secret_values(environ: Mapping[str, str]) -> set[str]:
    """Return the values of secret variables, their secret parts, and passwords in addresses."""
    values: set[str] = set()
    for name, value in environ.items():
        if _is_secret_variable(name, value):
            values.update(secret_parts(value))
        values.update(_passwords(value))
    return values


def remover_for(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that removes the secrets of an environment from a text."""
    return remover_of(secret_values(environ))


def remover_of(values: Collection[str]) -> Callable[[str], str]:
    """Return a function that removes some values from a text, in each of their spellings."""
    patterns = _patterns(values)

    def remove(text: str) -> str:
        for spelling, pattern in patterns:
            if spelling in text:
                text = pattern.sub(GONE, text)
        return text

    return remove


def places_in(text: str, values: Collection[str]) -> list[tuple[int, int]]:
    """Return the places of some values in a text, each with its begin and end.

    If there are too many, return one place that includes all of them.
    """
    spans: list[tuple[int, int]] = []
    for spelling, pattern in _patterns(values):
        if spelling in text:
            spans += [match.span() for match in pattern.finditer(text)]
    places: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if places and begin <= places[-1][1]:
            last_begin, last_end = places[-1]
            places[-1] = (last_begin, max(last_end, end))
        else:
            places.append((begin, end))
    if len(places) > _MAX_PLACES:
        return [(places[0][0], places[-1][1])]
    return places


def secret_parts(value: str) -> Iterator[str]:
    """Yield a secret, and its parts that look like secrets by themselves."""
    text = value.strip()
    if len(text) >= _MIN_LENGTH:
        yield text
    for part in _SEPARATORS.split(text):
        if len(part) >= _MIN_PART_LENGTH and is_opaque(part):
            yield part


def _is_secret_variable(name: str, value: str) -> bool:
    text = value.strip()
    if not is_secret(name) or is_harmless(name, text) or is_word_of_model(name, text):
        return False
    is_path = is_place(name) and text.startswith(("/", "~", "."))
    return not is_path


def _passwords(value: str) -> Iterator[str]:
    """Yield the passwords in addresses, both URL-encoded and decoded.

    If an address has no password, its user may be a token.
    """
    for match in _LOGIN.finditer(value):
        encoded = match["password"] or match["user"]
        for text in (encoded, unquote(encoded, errors="surrogateescape")):
            if len(text) >= _MIN_LENGTH:
                yield text


def _patterns(values: Collection[str]) -> list[tuple[str, re.Pattern[str]]]:
    """Return each spelling of some values with its pattern, the longest first."""
    spellings: set[str] = set()
    for value in values:
        spellings.update(_spellings(value))
    longest_first = sorted(spellings, key=len, reverse=True)
    return [(spelling, re.compile(_pattern(spelling))) for spelling in longest_first]


def _spellings(value: str) -> Iterator[str]:
    """Yield the spellings of a value in texts."""
    data = os.fsencode(value)
    yield from (value, quote(data, ""), quote(data), quote_plus(data))
    for encoded in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
        yield from (encoded, encoded.rstrip("="))


def _pattern(spelling: str) -> str:
    pattern = re.escape(spelling)
    if len(spelling) < _WORD_LIMIT and re.fullmatch(r"[A-Za-z]?[a-z]+|[A-Z]+|\d+", spelling):
        return rf"(?<![^\W_]){pattern}(?![^\W_])"
    return pattern
