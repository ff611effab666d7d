"""Removes values that follow the name of a secret: in headers, assignments, records, and on command lines."""

import re
from collections.abc import Callable
from functools import cache

from tuilab.scrub.names import is_secret
from tuilab.scrub.secrecy import hides, hides_option, is_harmless
from tuilab.text.display import GONE

_QUOTE = r"\\?['\"]"  # with a backslash before it within another quoted text
_KIND = r"(?:[bBfFrRuU]{1,2}(?=['\"]))?"  # of a string in Python
_QUOTED = (
    rf"(?P<quote>'''|\"\"\"|{_QUOTE})(?:(?!(?P=quote))(?:[^\\\n]|\\.))*+(?:(?P=quote)|(?=\n|\Z))"
)
_HEADER = (
    r"(?im)(?P<name>(?:\b(?:proxy-)?authorization|\b(?:set-)?cookie)"
    rf"(?:{_QUOTE})?\s*:\s*(?:\[\s*)?{_KIND})(?P<value>{_QUOTED}|[^\s'\"][^'\"\n]*)"
)
_IS_HEADER = re.compile(r"(?i)\b(?:authorization|cookie)\Z")
_PROSE = re.compile(
    r"(?!(?:basic|bearer|digest|token|key|apikey|negotiate|ntlm|hawk)\b)[a-z]+(?: [a-z]+)+[.!]?"
)
_ANNOTATION = r"[A-Za-z_][\w.]{0,40}(?:\[[\w., |]{0,40}\])?(?:\s{0,3}\|\s{0,3}[A-Za-z_][\w.]{0,40}){0,3}"  # str | None
_QUOTED_AHEAD = rf"(?=(?:[\[({{]\s{{0,20}}{_KIND})?{_QUOTE}|{re.escape(GONE)})"
_TYPE = rf"\s{{0,3}}{_ANNOTATION}\s{{0,3}}=\s{{0,3}}{_KIND}{_QUOTED_AHEAD}"  # what stands between a name and its default
_ANNOTATED = rf"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{{0,80}}+)\s{{0,3}}(?P<sign>:{_TYPE})"  # name: str = "value"
_NAMED = (  # name: value, "name": value, ["name"] = value
    rf"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{{0,80}}+)(?:{_QUOTE})?\]?\s{{0,20}}"
    rf"(?P<sign>[:?]?={{1,3}}>?|::?(?!{_TYPE}))\s{{0,20}}{_KIND}"
)
_OPTION = r"(?<![\w-])--?(?P<name>[A-Za-z][\w-]{0,80}+)(?:=| +(?!-))"
_BRACKETS = "[](){},'\" "  # what may stand around the only value of a list
_LOOKED_AT = 200  # characters of a value, to tell whether it is a secret
_VALUE = (  # quoted, several in brackets, or as far as it goes: a comma that another name follows ends it
    rf"{_QUOTED}|[\[({{]\s{{0,20}}{_KIND}{_QUOTE}[^\n\])}}]*[\])}}]?"
    r"|(?:[^\s'\",;&)}\]]|[,;&)}\]](?![\s'\"]|\Z|[A-Za-z_][\w.-]{0,80}+['\"]?\s*[=:]))++"
)


def remove_fields(text: str) -> str:
    """Return a text without the values that follow names of secrets."""
    text = _compiled(_HEADER).sub(_without_header, text)
    text = _remove_named(text, _ANNOTATED, _hides_here)
    text = _remove_named(text, _NAMED, _hides_here)
    return _remove_named(text, _OPTION, lambda found, value: hides_option(found["name"], value))


def _without_header(found: re.Match[str]) -> str:
    quote = found["quote"] or ""
    value = found["value"].strip(f"{quote} ")
    is_told = "=" in value or not (is_harmless("cookie", value) or _PROSE.fullmatch(value))
    return found["name"] + quote + GONE + quote if is_told else found[0]


def _remove_named(text: str, pattern: str, is_hidden: Callable[[re.Match[str], str], bool]) -> str:
    """Remove the values that follow names of secrets."""
    kept: list[str] = []
    at = 0
    for found in _compiled(pattern).finditer(text):
        if found.start() < at or not is_secret(found["name"]):
            continue
        first = _value(text, found.end(), _LOOKED_AT)
        if first is None or first[0].lstrip("'\"\\").startswith(GONE[:-1]):
            continue
        quote = first["quote"] or ""
        if is_hidden(found, first[0].strip(quote or _BRACKETS)):
            whole = _value(text, found.end(), len(text)) or first
            kept += [text[at : found.end()], quote, GONE, quote]
            at = whole.end()
    return "".join([*kept, text[at:]])


def _hides_here(found: re.Match[str], value: str) -> bool:
    """Say whether a value is a secret where its name stands."""
    if found["sign"] == ":" and _IS_HEADER.search(found["name"]):
        return False  # a header may contain blanks; _HEADER has removed it
    return hides(found["name"], value)


def _value(text: str, at: int, limit: int) -> re.Match[str] | None:
    return _compiled(_VALUE).match(text, at, at + limit)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
