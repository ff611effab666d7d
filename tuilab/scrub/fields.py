"""Remove values that follow the name of a secret.

The names are those of headers, of assignments and records, and of options on command lines.
"""

import re
from collections.abc import Callable
from functools import cache

from tuilab.scrub.names import is_secret
from tuilab.scrub.secrecy import hides, hides_option, is_harmless
from tuilab.text.display import GONE

_QUOTE = r"\\?['\"]"  # a backslash is before it if it is in another quoted text
_PREFIX = r"(?:[bBfFrRuU]{1,2}(?=['\"]))?"  # of a string in Python
_QUOTED = (
    rf"(?P<quote>'''|\"\"\"|{_QUOTE})(?:(?!(?P=quote))(?:[^\\\n]|\\.))*+(?:(?P=quote)|(?=\n|\Z))"
)
_HEADER = (
    r"(?im)(?P<name>(?:\b(?:proxy-)?authorization|\b(?:set-)?cookie)"
    rf"(?:{_QUOTE})?\s*:\s*(?:\[\s*)?{_PREFIX})(?P<value>{_QUOTED}|[^\s'\"][^'\"\n]*)"
)
_IS_HEADER = re.compile(r"(?i)\b(?:authorization|cookie)\Z")
_PROSE = re.compile(
    r"(?!(?:basic|bearer|digest|token|key|apikey|negotiate|ntlm|hawk)\b)[a-z]+(?: [a-z]+)+[.!]?"
)
_ANNOTATION = (  # str | None
    r"[A-Za-z_][\w.]{0,40}(?:\[[\w., |]{0,40}\])?(?:\s{0,3}\|\s{0,3}[A-Za-z_][\w.]{0,40}){0,3}"
)
_QUOTED_AHEAD = rf"(?=(?:[\[({{]\s{{0,20}}{_PREFIX})?{_QUOTE}|{re.escape(GONE)})"
# The type between a name and its default: name: str = "value"
_TYPE = rf"\s{{0,3}}{_ANNOTATION}\s{{0,3}}=\s{{0,3}}{_PREFIX}{_QUOTED_AHEAD}"
_ANNOTATED = rf"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{{0,80}}+)\s{{0,3}}(?P<sign>:{_TYPE})"
_NAMED = (  # name: value, "name": value, ["name"] = value
    rf"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{{0,80}}+)(?:{_QUOTE})?\]?\s{{0,20}}"
    rf"(?P<sign>[:?]?={{1,3}}>?|::?(?!{_TYPE}))\s{{0,20}}{_PREFIX}"
)
_OPTION = r"(?<![\w-])--?(?P<name>[A-Za-z][\w-]{0,80}+)(?:=| +(?!-))"
_BRACKETS = "[](){},'\" "  # may be around the only value of a list
_EXAMINED = 200  # characters of a value that decide whether it is a secret
# A quoted value, several in brackets, or all up to the end. A comma ends it if a name follows.
_VALUE = (
    rf"{_QUOTED}|[\[({{]\s{{0,20}}{_PREFIX}{_QUOTE}[^\n\])}}]*[\])}}]?"
    r"|(?:[^\s'\",;&)}\]]|[,;&)}\]](?![\s'\"]|\Z|[A-Za-z_][\w.-]{0,80}+['\"]?\s*[=:]))++"
)


def remove_fields(text: str) -> str:
    """Return a text without the values that follow names of secrets."""
    text = _compiled(_HEADER).sub(_without_header, text)
    text = _remove_named(text, _ANNOTATED, _hides_field)
    text = _remove_named(text, _NAMED, _hides_field)
    return _remove_named(text, _OPTION, _hides_option)


def _without_header(match: re.Match[str]) -> str:
    """Return a header without its value, or as it is if the value is harmless or a sentence."""
    quote = match["quote"] or ""
    value = match["value"].strip(f"{quote} ")
    if "=" not in value and (is_harmless("cookie", value) or _PROSE.fullmatch(value)):
        return match[0]
    return match["name"] + quote + GONE + quote


def _remove_named(text: str, pattern: str, is_hidden: Callable[[re.Match[str], str], bool]) -> str:
    """Return a text without the hidden values that follow matches of a pattern."""
    parts: list[str] = []
    end = 0  # of the part of the text that is done
    for match in _compiled(pattern).finditer(text):
        if match.start() < end or not is_secret(match["name"]):
            continue
        beginning = _match_value(text, match.end(), _EXAMINED)
        if beginning is None or beginning[0].lstrip("'\"\\").startswith(GONE[:-1]):
            continue
        quote = beginning["quote"] or ""
        if is_hidden(match, beginning[0].strip(quote or _BRACKETS)):
            whole = _match_value(text, match.end(), len(text)) or beginning
            parts += (text[end : match.end()], quote, GONE, quote)
            end = whole.end()
    parts.append(text[end:])
    return "".join(parts)


def _hides_field(match: re.Match[str], value: str) -> bool:
    """Return whether a value is a secret because of the name before it."""
    if match["sign"] == ":" and _IS_HEADER.search(match["name"]):
        return False  # a header may contain blanks; _HEADER has removed it
    return hides(match["name"], value)


def _hides_option(match: re.Match[str], value: str) -> bool:
    return hides_option(match["name"], value)


def _match_value(text: str, start: int, limit: int) -> re.Match[str] | None:
    """Return the match of the value at a place in a text, within so many characters."""
    return _compiled(_VALUE).match(text, start, start + limit)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
