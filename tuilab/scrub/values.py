"""The values of this process's secret variables, and how they may be spelt in a text: plain, in an address, coded, cut."""

import base64
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

from tuilab.scrub import names
from tuilab.scrub.fields import is_harmless, is_word_of_model
from tuilab.scrub.forms import is_opaque
from tuilab.text import GONE

_SHORTEST = 6  # a secret of fewer characters is found everywhere
_WORD_LIMIT = 12  # characters; a shorter one of letters alone, or of digits, is only looked for as a whole word
_GAPPED = 16  # characters; a longer one may be wrapped
_GAPPED_LIMIT = 4096
_MOST_PLACES = 1000  # that are kept of one log
_LOGIN = re.compile(r"://(?P<user>[^/\s:@]*):?(?P<password>[^\s]*)@")
_PIECES = re.compile(r"[\s:;,|&=\"'{}()<>@]+")
_SAFE = ("", "/", "!'()*", "!$&'()*+,;=", "!#$%&'()*+,/:;=?@[]~")  # what those who quote for an address leave as it is
_BLANK = re.compile(r"\s+|\\[nrt]")  # a line feed, or how it is spelt in a representation
_GAP = r"(?:\s|\\[nrt])*"


def secret_values(environ: Mapping[str, str]) -> set[str]:
    """Return the values that variables hide, and the pieces of them that are worth hiding by themselves."""
    found = {text for name, value in environ.items() if _is_hiding(name, value) for text in pieces(value)}
    return found | {text for value in environ.values() for text in _logins(value)}


def remover(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that removes the secrets of an environment from a text, however they are spelt."""
    return removing(secret_values(environ))


def places_in(text: str, values: Collection[str]) -> list[tuple[int, int]]:
    """Return from where to where some values stand in a text, however they are spelt; if they are many, one place for all."""
    folded = _folds(text)
    spans = []
    for spelling in {spelling for value in values for spelling in _spellings(value)}:
        if any(_fold(spelling) in one for one in folded):
            spans += [found.span() for found in re.finditer(_pattern(spelling), text, flags=re.IGNORECASE)]
    places: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if places and begin <= places[-1][1]:
            places[-1] = places[-1][0], max(places[-1][1], end)
        else:
            places.append((begin, end))
    return places if len(places) <= _MOST_PLACES else [(places[0][0], places[-1][1])]


def removing(values: Collection[str]) -> Callable[[str], str]:
    """Return a function that removes some values from a text, however they are spelt."""
    spellings = sorted({spelling for value in values for spelling in _spellings(value)}, key=len, reverse=True)
    folds = [_fold(spelling) for spelling in spellings]
    whole = [value for value in values if len(value) >= _WORD_LIMIT]
    every = "\0".join(whole)
    if not spellings:
        return lambda text: text

    def remove(text: str) -> str:
        folded = _folds(text)
        for spelling, fold in zip(spellings, folds, strict=True):
            if any(fold in one for one in folded):
                text = re.sub(_pattern(spelling), GONE, text, flags=re.IGNORECASE)
                folded = _folds(text)
        return "…".join(_trim(part, whole) if _is_cut(part, every) else part for part in text.split("…"))

    return remove


def _is_hiding(name: str, value: str) -> bool:
    is_path = names.is_place(name) and value.startswith(("/", "~", "."))
    text = value.strip()
    return names.is_secret(name) and not is_path and not is_harmless(name, text) and not is_word_of_model(name, text)


def pieces(value: str) -> Iterator[str]:
    text = value.strip()
    if len(text) >= _SHORTEST:
        yield text
    yield from (piece for piece in _PIECES.split(text) if len(piece) >= 8 and is_opaque(piece))
    if "\n" in text:
        yield from (line.strip() for line in text.split("\n") if len(line.strip()) >= _GAPPED and "-----" not in line)


def _logins(value: str) -> Iterator[str]:
    """Yield who logs in where a variable holds an address."""
    for found in _LOGIN.finditer(value):
        secret = found["password"] or found["user"]
        yield from (text for text in (secret, unquote(secret, errors="surrogateescape")) if len(text) >= _SHORTEST)


def _spellings(value: str) -> Iterator[str]:
    """Yield a value as it is spelt in texts, also where one spelling went into another; capitals and small letters are one."""
    once = dict.fromkeys(_spelt(value))
    yield from once
    for spelling in once:
        yield from _spelt(spelling)


def _spelt(value: str) -> Iterator[str]:
    data = os.fsencode(value)
    yield from (value, json.dumps(value)[1:-1], repr(value)[1:-1], quote_plus(data), data.hex())
    yield from (quote(data, safe) for safe in _SAFE)
    for text in _in_groups(data, base64.b64encode, 3, 6):
        yield from (text, text.replace("+", "-").replace("/", "_"))
    yield from _in_groups(data, base64.b32encode, 5, 5)


def _in_groups(data: bytes, encode: Callable[[bytes], bytes], size: int, bits: int) -> Iterator[str]:
    """Yield the base64 or base32 of a secret, and what of it is always there when something stands before and after it."""
    yield encode(data).decode()
    for before in range(size):
        inner = encode(bytes(before) + data).decode()[-(-before * 8 // bits) : (before + len(data)) * 8 // bits]
        if len(inner) >= _SHORTEST:
            yield inner


def _folds(text: str) -> set[str]:
    """Return a text as it is searched: what looks like a line feed that is spelt out may be the beginning of a secret."""
    return {_fold(text), re.sub(r"\s+", "", text).lower()}


def _fold(text: str) -> str:
    return _BLANK.sub("", text.lower())  # in capitals, a line feed that is spelt out is, too


def _pattern(spelling: str) -> str:
    if _GAPPED <= len(spelling) <= _GAPPED_LIMIT:
        return _GAP.join(map(re.escape, _BLANK.sub("", spelling)))
    if len(spelling) < _WORD_LIMIT and re.fullmatch(r"[A-Za-z]?[a-z]+|[A-Z]+|\d+", spelling):
        return rf"(?<![^\W_]){re.escape(spelling)}(?![^\W_])"
    return re.escape(spelling)


def _is_cut(text: str, values: str) -> bool:
    """Say whether a text begins or ends with a part of a value; most do not."""
    return len(text) >= _SHORTEST and (text[:_SHORTEST] in values or text[-_SHORTEST:] in values)


def _trim(text: str, values: list[str]) -> str:
    """Remove what is left of a secret where a text was cut."""
    for value in values:
        if text[:_SHORTEST] in value and (size := _overlap(text, value)):
            text = GONE + text[size:]
        if text[-_SHORTEST:] in value and (size := _overlap(text[::-1], value[::-1])):
            text = text[:-size] + GONE
    return text


def _overlap(text: str, value: str) -> int:
    """Return how many characters at the beginning of a text are the end of a value."""
    longest = min(len(text), len(value) - 1)
    return next((size for size in range(longest, _SHORTEST - 1, -1) if text.startswith(value[-size:])), 0)
