"""Whether a name and its value together tell a secret: `max_tokens=512` does not, and `hf_token=words` does."""

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
    may_be_of_model,
)

_DULL = frozenset(  # what is no secret whatever its name
    {
        "true",
        "false",
        "none",
        "null",
        "yes",
        "no",
        "on",
        "off",
        "auto",
        "default",
        "enable",
        "enabled",
        "disable",
        "disabled",
    }
    | {
        "required",
        "optional",
        "always",
        "never",
        "unset",
        "empty",
        "unknown",
        "missing",
        "localhost",
    }
    | {
        "ok",
        "failed",
        "failure",
        "denied",
        "granted",
        "expired",
        "invalid",
        "rejected",
        "accepted",
        "nil",
        "nan",
        "inf",
        "n/a",
    }
    | {"str", "int", "bytes"}
)
_NUMBER = re.compile(r"[+-]?(?P<whole>[\d_,]{0,30})(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?[kKMGTB%]?")
_TO_BE_FILLED_IN = re.compile(r"\{\w{1,80}\}")
_ENDS = "`'\").:;,"  # of a quotation, behind a number
_BRACKETED = re.compile(
    r"</?[\w.-]{1,20}>|<\|[\w.-]{1,24}\|>|\[[A-Za-z_]{1,20}\]"
)  # <pad>, </s>, <|endoftext|>, [CLS]
_PLAIN_WORD = re.compile(r"(?:[a-z]+|[A-Z]+|[A-Z][a-z]+)(?:[_.-](?:[a-z]+|[A-Z]+|[A-Z][a-z]+))?")
_VOWEL = re.compile(r"(?i)[aeiouy]")
_LONGEST_WORD = 16  # characters
_ABBREVIATED = 3  # letters: bos, cls, lr
_FEW_DIGITS = 3  # which nobody takes for a password
_COUNT_DIGITS = 15  # which nobody takes for a token: so many are counted of them
_MADE_UP = re.compile(r"[\w.~+/=\\-]{8,200}")
_FEW_LETTERS = 4


def is_harmless(name: str, value: str) -> bool:
    """Say whether a value is a switch, or a number that no secret of this name is: a log is full of counted tokens."""
    return value.casefold() in _DULL or _is_number(
        value, _FEW_DIGITS if is_typed(name) else _COUNT_DIGITS
    )


def is_word_of_model(name: str, value: str) -> bool:
    """Say whether a value names a token or a key of a model, as in `--pad-token <pad>`, `--special-tokens bos,eos`.

    What stands in brackets is a token of a vocabulary under any such name. A word is one if the name says whose token it is:
    people do choose `--jupyter-token letmein`.
    """
    words = [word.strip() for word in value.split(",")]
    if not may_be_of_model(name):
        return False
    has_model_word = is_of_model(name)
    return all(
        _BRACKETED.fullmatch(word) or (has_model_word and _is_plain_word(word)) for word in words
    )


def _is_plain_word(word: str) -> bool:
    """Say whether a word is one, or two, that people pronounce, or the few letters of an abbreviation."""
    if len(word) > _LONGEST_WORD or not _PLAIN_WORD.fullmatch(word):
        return False
    return all(
        len(part) <= _ABBREVIATED or _VOWEL.search(part) for part in re.split(r"[_.-]", word)
    )


def is_count(value: str) -> bool:
    """Say whether a value counts, or is to be filled in: 8192, 128,256, {tokens}, and that with the end of a quotation."""
    value = value.rstrip(_ENDS)
    return _TO_BE_FILLED_IN.fullmatch(value) is not None or (
        value != "" and _is_number(value, _COUNT_DIGITS)
    )


def _is_number(value: str, most: int) -> bool:
    number = _NUMBER.fullmatch(value)
    return number is not None and sum(map(str.isdigit, number["whole"])) <= most


def hides(name: str, value: str) -> bool:
    """Say whether a text that gives a name this value tells a secret."""
    if not is_secret(name) or is_harmless(name, value) or is_word_of_model(name, value):
        return False
    if is_certain(name) or is_variable(name) or is_opaque(value):
        return True
    return is_token(name) and _is_made_up(value)


def _is_made_up(value: str) -> bool:
    """Say whether a value has letters and digits, as people choose them for a token: no word, and no number with its unit."""
    letters = sum(map(str.isalpha, value))
    return (
        bool(_MADE_UP.fullmatch(value)) and letters >= _FEW_LETTERS and any(map(str.isdigit, value))
    )


def hides_option(name: str, value: str) -> bool:
    """Say whether an option with this name was given a secret: whoever types `--token` means one that opens a door."""
    if is_counted(name) and is_count(value):
        return False
    if is_word_of_model(name, value):
        return False
    is_password = is_certain(name) and is_typed(name)
    return is_secret(name) and (is_password or not is_harmless(name, value))
