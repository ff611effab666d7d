"""Decide whether a name and its value are a secret.

For example, `max_tokens=512` is none, and `hf_token=words` is one.
"""

import re

from tuilab.scrub.forms import is_opaque
from tuilab.scrub.names import (
    is_certain,
    is_counted,
    is_of_model,
    is_secret,
    is_token,
    is_typed,
    is_variable,
    may_name_model_data,
)

# Values that are no secret whatever their name is.
_SWITCHES = frozenset({
    "accepted", "always", "auto", "bytes", "default", "denied", "disable", "disabled", "empty",
    "enable", "enabled", "expired", "failed", "failure", "false", "granted", "inf", "int",
    "invalid", "localhost", "missing", "n/a", "nan", "never", "nil", "no", "none", "null", "off",
    "ok", "on", "optional", "rejected", "required", "str", "true", "unknown", "unset", "yes",
})  # fmt: skip
_NUMBER = re.compile(r"[+-]?(?P<whole>[\d_,]{0,30})(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?[kKMGTB%]?")
_PLACEHOLDER = re.compile(r"\{\w{1,80}\}")
_ENDS = "`'\").:;,"  # the end of a quotation, after a number
# <pad>, </s>, <|endoftext|>, [CLS]
_BRACKETED = re.compile(r"</?[\w.-]{1,20}>|<\|[\w.-]{1,24}\|>|\[[A-Za-z_]{1,20}\]")
_PLAIN_WORD = re.compile(r"(?:[a-z]+|[A-Z]+|[A-Z][a-z]+)(?:[_.-](?:[a-z]+|[A-Z]+|[A-Z][a-z]+))?")
_VOWEL = re.compile(r"(?i)[aeiouy]")
_MAX_WORD = 16  # characters
_MAX_ABBREVIATION = 3  # letters: bos, cls, lr
_FEW_DIGITS = 3  # too few for a password
_COUNT_DIGITS = 15  # a count has at most this many; a token of digits has more
_CHOSEN = re.compile(r"[\w.~+/=\\-]{8,200}")
_MIN_LETTERS = 4  # of a token that people choose


def is_harmless(name: str, value: str) -> bool:
    """Return whether a value is a switch, or a number that cannot be a secret of this name.

    Logs are full of counted tokens.
    """
    if value.casefold() in _SWITCHES:
        return True
    max_digits = _COUNT_DIGITS
    if is_typed(name):
        max_digits = _FEW_DIGITS
    return _is_number(value, max_digits)


def is_word_of_model(name: str, value: str) -> bool:
    """Return whether a value names tokens or keys of a model.

    Examples are `--pad-token <pad>` and `--special-tokens bos,eos`. A word in brackets is a token
    of a vocabulary under any such name. Another word is one only if the name belongs to a model:
    people do choose `--jupyter-token letmein`.
    """
    if not may_name_model_data(name):
        return False
    has_model_name = is_of_model(name)
    for part in value.split(","):
        word = part.strip()
        if _BRACKETED.fullmatch(word):
            continue
        if not has_model_name or not _is_plain_word(word):
            return False
    return True


def _is_plain_word(word: str) -> bool:
    """Return whether a word is one or two that people can pronounce, or a short abbreviation."""
    if len(word) > _MAX_WORD or not _PLAIN_WORD.fullmatch(word):
        return False
    parts = re.split(r"[_.-]", word)
    return all(len(part) <= _MAX_ABBREVIATION or _VOWEL.search(part) for part in parts)


def is_count(value: str) -> bool:
    """Return whether a value is a count or a placeholder, such as 8192, 128,256 and {tokens}.

    The end of a quotation may follow.
    """
    value = value.rstrip(_ENDS)
    if _PLACEHOLDER.fullmatch(value):
        return True
    return value != "" and _is_number(value, _COUNT_DIGITS)


def _is_number(value: str, max_digits: int) -> bool:
    number = _NUMBER.fullmatch(value)
    return number is not None and sum(map(str.isdigit, number["whole"])) <= max_digits


def hides(name: str, value: str) -> bool:
    """Return whether a value is a secret in a text that assigns it to this name."""
    if not is_secret(name) or is_harmless(name, value) or is_word_of_model(name, value):
        return False
    if is_certain(name) or is_variable(name) or is_opaque(value):
        return True
    return is_token(name) and is_chosen(value)


def is_chosen(value: str) -> bool:
    """Return whether a value is a token that people chose: it has letters and digits.

    A word has no digits, and a number with its unit has few letters.
    """
    if not _CHOSEN.fullmatch(value):
        return False
    letters = sum(map(str.isalpha, value))
    return letters >= _MIN_LETTERS and any(map(str.isdigit, value))


def hides_option(name: str, value: str) -> bool:
    """Return whether the value of an option is a secret.

    An option that is called `--token` gives access to something, even if its value looks harmless
    elsewhere.
    """
    if is_counted(name) and is_count(value):
        return False
    if is_word_of_model(name, value):
        return False
    is_password = is_certain(name) and is_typed(name)
    return is_secret(name) and (is_password or not is_harmless(name, value))
