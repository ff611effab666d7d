"""Values that stand behind the name of a secret: in headers, assignments, records, elements, and on command lines."""

import re
from collections.abc import Callable
from functools import cache

from tuilab.scrub import names
from tuilab.scrub.forms import is_opaque
from tuilab.text import GONE

_DULL = frozenset(  # what is no secret whatever its name
    {"true", "false", "none", "null", "yes", "no", "on", "off", "auto", "default", "enable", "enabled", "disable", "disabled"}
    | {"required", "optional", "always", "never", "unset", "empty", "unknown", "missing", "localhost"}
    | {"ok", "failed", "failure", "denied", "granted", "expired", "invalid", "rejected", "accepted", "nil", "nan", "inf", "n/a"}
    | {"str", "int", "bytes"}
)
_NUMBER = re.compile(r"[+-]?(?P<whole>[\d_,]{0,30})(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?[kKMGTB%]?")
_TO_BE_FILLED_IN = re.compile(r"\{\w{1,80}\}")
_ENDS = "`'\").:;,"  # of a quotation, behind a number
_BRACKETED = re.compile(r"</?[\w.-]{1,20}>|<\|[\w.-]{1,24}\|>|\[[A-Za-z_]{1,20}\]")  # <pad>, </s>, <|endoftext|>, [CLS]
_PLAIN_WORD = re.compile(r"(?:[a-z]+|[A-Z]+|[A-Z][a-z]+)(?:[_.-](?:[a-z]+|[A-Z]+|[A-Z][a-z]+))?")
_VOWEL = re.compile(r"(?i)[aeiouy]")
_LONGEST_WORD = 16  # characters
_ABBREVIATED = 3  # letters: bos, cls, lr
_FEW_DIGITS = 3  # which nobody takes for a password
_COUNT_DIGITS = 15  # which nobody takes for a token: so many are counted of them
_QUOTE = r"\\{0,8}['\"]"  # a backslash stands before it where one JSON is told in another
_KIND = r"(?:[bBfFrRuU]{1,2}(?=['\"]))?"  # of a string in Python
_QUOTED = rf"(?P<quote>'''|\"\"\"|{_QUOTE})(?:(?!(?P=quote))(?:[^\\\n]|\\.))*+(?:(?P=quote)|(?=\n|\Z))"
_HEADER = (
    r"(?im)(?P<name>(?:\b(?:proxy-)?authorization|\b(?:set-)?cookie)"
    rf"(?:{_QUOTE})?\s*:\s*(?:\[\s*)?{_KIND})(?P<value>{_QUOTED}|[^\s'\"][^'\"\n]*)"
)
_IS_HEADER = re.compile(r"(?i)\b(?:authorization|cookie)\Z")
_PROSE = re.compile(r"(?!(?:basic|bearer|digest|token|key|apikey|negotiate|ntlm|hawk)\b)[a-z]+(?: [a-z]+)+[.!]?")
_NETRC = r"(?P<before>\b(?:machine\s+\S{1,200}|default)\s+(?:(?:login|account)\s+\S{1,200}\s+){0,2}password\s+)\S+"
_ELEMENT = (
    r"(?P<before><(?P<name>[A-Za-z_][\w:.-]{0,80}+)(?:\s[^<>]{0,200})?>\s{0,20}(?:<!\[CDATA\[)?)(?P<value>[^<]+?)"
    r"(?=(?:\]\]>)?</)"
)
_ANNOTATION = r"[A-Za-z_][\w.]{0,40}(?:\[[\w., |]{0,40}\])?(?:\s{0,3}\|\s{0,3}[A-Za-z_][\w.]{0,40}){0,3}"  # str | None
_QUOTED_AHEAD = rf"(?=(?:[\[({{]\s{{0,20}}{_KIND})?{_QUOTE}|{re.escape(GONE)})"
_TYPE = rf"\s{{0,3}}{_ANNOTATION}\s{{0,3}}=\s{{0,3}}{_KIND}{_QUOTED_AHEAD}"  # what stands between a name and its default
_ANNOTATED = rf"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{{0,80}}+)\s{{0,3}}(?P<sign>:{_TYPE})"  # name: str = "value"
_NAMED = (  # name: value, "name": value, ["name"] = value, name and value as fields, ("name", "value"), and what a tab parts
    rf"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{{0,80}}+)(?:{_QUOTE})?\]?(?:\s{{0,20}}(?P<sign>[:?]?={{1,3}}>?"
    rf"|::?(?!{_TYPE})|->"
    rf"|,?\s{{0,20}}(?:{_QUOTE})?value(?:{_QUOTE})?\s{{0,20}}[:=]|(?<=['\"]),(?=\s{{0,20}}{_KIND}{_QUOTE}))"
    rf"| {{0,20}}\t(?=[ \t]{{0,20}}\S))\s{{0,20}}(?:[|>][+-]?\n\s{{0,20}})?{_KIND}"
)
_OPTION = r"(?<![\w-])--?(?P<name>[A-Za-z][\w-]{0,80}+)(?:=| +(?!-))"
_BRACKETS = "[](){},'\" "  # what may stand around the only value of a list
_MADE_UP = re.compile(r"[\w.~+/=\\-]{8,200}")
_FEW_LETTERS = 4
_LOOKED_AT = 200  # characters of a value, to tell whether it is a secret
_VALUE = (  # quoted, several in brackets, or as far as it goes: a comma that another name follows ends it
    rf"{_QUOTED}|[\[({{]\s{{0,20}}{_KIND}{_QUOTE}[^\n\])}}]*[\])}}]?"
    r"|(?:[^\s'\",;&)}\]]|[,;&)}\]](?![\s'\"]|\Z|[A-Za-z_][\w.-]{0,80}+['\"]?\s*[=:]))++"
)


def remove_fields(text: str) -> str:
    """Return a text without the values that follow names of secrets."""
    text = _compiled(_HEADER).sub(_without_header, text)
    text = _compiled(_ELEMENT).sub(_without_content, text)
    text = _compiled(_NETRC).sub(rf"\g<before>{GONE}", text)
    text = _remove_named(text, _ANNOTATED, _hides_here)
    text = _remove_named(text, _NAMED, _hides_here)
    return _remove_named(text, _OPTION, lambda found, value: hides_option(found["name"], value))


def is_harmless(name: str, value: str) -> bool:
    """Say whether a value is a switch, or a number that no secret of this name is: a log is full of counted tokens."""
    return value.casefold() in _DULL or _is_number(value, _FEW_DIGITS if names.is_typed(name) else _COUNT_DIGITS)


def is_word_of_model(name: str, value: str) -> bool:
    """Say whether a value names a token or a key of a model, as in `--pad-token <pad>`, `--special-tokens bos,eos`.

    What stands in brackets is a token of a vocabulary under any such name. A word is one if the name says whose token it is:
    people do choose `--jupyter-token letmein`.
    """
    words = [word.strip() for word in value.split(",")]
    if not names.may_be_of_model(name):
        return False
    is_of_model = names.is_of_model(name)
    return all(_BRACKETED.fullmatch(word) or (is_of_model and _is_plain_word(word)) for word in words)


def _is_plain_word(word: str) -> bool:
    """Say whether a word is one, or two, that people pronounce, or the few letters of an abbreviation."""
    if len(word) > _LONGEST_WORD or not _PLAIN_WORD.fullmatch(word):
        return False
    return all(len(part) <= _ABBREVIATED or _VOWEL.search(part) for part in re.split(r"[_.-]", word))


def is_count(value: str) -> bool:
    """Say whether a value counts, or is to be filled in: 8192, 128,256, {tokens}, and that with the end of a quotation."""
    value = value.rstrip(_ENDS)
    return _TO_BE_FILLED_IN.fullmatch(value) is not None or (value != "" and _is_number(value, _COUNT_DIGITS))


def _is_number(value: str, most: int) -> bool:
    number = _NUMBER.fullmatch(value)
    return number is not None and sum(map(str.isdigit, number["whole"])) <= most


def hides(name: str, value: str) -> bool:
    """Say whether a text that gives a name this value tells a secret."""
    if not names.is_secret(name) or is_harmless(name, value) or is_word_of_model(name, value):
        return False
    if names.is_certain(name) or names.is_variable(name) or is_opaque(value):
        return True
    return names.is_token(name) and _is_made_up(value)


def _is_made_up(value: str) -> bool:
    """Say whether a value has letters and digits, as people choose them for a token: no word, and no number with its unit."""
    letters = sum(map(str.isalpha, value))
    return bool(_MADE_UP.fullmatch(value)) and letters >= _FEW_LETTERS and any(map(str.isdigit, value))


def hides_option(name: str, value: str) -> bool:
    """Say whether an option with this name was given a secret: whoever types `--token` means one that opens a door."""
    if names.is_counted(name) and is_count(value):
        return False
    if is_word_of_model(name, value):
        return False
    is_password = names.is_certain(name) and names.is_typed(name)
    return names.is_secret(name) and (is_password or not is_harmless(name, value))


def _without_header(found: re.Match[str]) -> str:
    quote = found["quote"] or ""
    value = found["value"].strip(f"{quote} ")
    is_told = "=" in value or not (is_harmless("cookie", value) or _PROSE.fullmatch(value))
    return found["name"] + quote + GONE + quote if is_told else found[0]


def _without_content(found: re.Match[str]) -> str:
    return found["before"] + GONE if hides(found["name"], found["value"].strip()) else found[0]


def _remove_named(text: str, pattern: str, is_hidden: Callable[[re.Match[str], str], bool]) -> str:
    """Remove the values that follow names of secrets."""
    kept: list[str] = []
    at = 0
    for found in _compiled(pattern).finditer(text):
        if found.start() < at or not names.is_secret(found["name"]):
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
    """Say whether a value is a secret where its name stands; a weak sign between them takes a telling name."""
    name, sign = found["name"], found["sign"]
    if sign == ":" and _IS_HEADER.search(name):
        return False  # a header, which may have blanks: it was looked at as one
    is_sure = sign not in (None, ",") or names.is_certain(name) or names.is_variable(name)
    return is_sure and hides(name, value)


def _value(text: str, at: int, limit: int) -> re.Match[str] | None:
    return _compiled(_VALUE).match(text, at, at + limit)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
