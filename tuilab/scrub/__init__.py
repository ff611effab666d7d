"""Remove secrets from data: by their names, by their form, and by the values of secret variables.

`scrub` is for data that leaves this machine. It also removes words that look random, and the home
folder. The other functions are for the record of a run, which must say as exactly as possible
which program ran.

Some secrets stay: a value of fewer than 6 characters that does not follow its name, a value that
is split, cut, or encoded in another way than for a URL or in base64, and a secret in a sentence. A
number after a name that counts tokens or keys is no secret, and neither is `none`. A word after
`pad_token`, `lr_key` and the like is the token or key of a model, if people can pronounce it or
if it is in brackets.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tuilab.scrub.fields import remove_fields
from tuilab.scrub.forms import remove_forms, remove_random_words
from tuilab.scrub.names import is_certain, is_counted, is_secret
from tuilab.scrub.secrecy import hides, hides_option, is_count, is_harmless, is_word_of_model
from tuilab.scrub.values import remover_for, remover_of, secret_parts
from tuilab.text.display import GONE as GONE

Clean = Callable[[str], str]

_CACHED_TEXTS = 2048  # records repeat the same few words
_LONGEST_PATH = 4096
_NAME = re.compile(r"[-+]{0,2}[A-Za-z_][\w.-]{0,100}")
_RUNS_SCRIPT = re.compile(r"-[a-z]{0,5}c")  # bash -c, bash -lc, python -c: the next word is code
_LINE_CHARACTERS = re.compile(r"[\s;&|]")  # a word with one of them is a line of code
_PATH_END = re.compile(r"[\s\"'`=:;,|<>()\[\]{}]")


# ---- data that leaves this machine


def scrub(value: Any, environ: Mapping[str, str] | None = None) -> Any:
    """Return plain data as it may leave this machine.

    The values of this process's secret variables are removed everywhere.
    """
    return scrubber(environ)(value)


def scrubber(
    environ: Mapping[str, str] | None = None, *, keeps_numbers: bool = False
) -> Callable[[Any], Any]:
    """Return a function that does the same as `scrub`, for much data.

    With `keeps_numbers` it keeps numbers, whatever their names are.
    """
    if environ is None:
        environ = os.environ
    remove = remover_for(environ)
    home = environ.get("HOME", "").rstrip("/")
    home_pattern = re.compile(rf"{re.escape(home)}(?=/|$|[^\w.-]|[.-](?!\w))")

    @lru_cache(_CACHED_TEXTS)
    def clean(text: str) -> str:
        text = remove_random_words(remove_fields(remove_forms(remove(text))))
        if len(home) <= 1:
            return text
        return home_pattern.sub(_shorten_home, text)

    hidden_types: Any = str | int | float
    if keeps_numbers:
        hidden_types = str
    return lambda value: _clean_data(value, clean, hidden_types)


def _shorten_home(match: re.Match[str]) -> str:
    if _begins_path(match.string, match.start()):
        return "~"
    return match[0]


def _begins_path(text: str, position: int) -> bool:
    """Return whether a path begins here: `/root` in `-I/root`, but not in `/mnt/root`."""
    text_before = text[max(position - _LONGEST_PATH, 0) : position]
    path_start = _PATH_END.split(text_before)[-1]
    return "/" not in path_start or path_start == "//"


# ---- the record of a run


def cleaner_of_texts(environ: Mapping[str, str] | None = None) -> Clean:
    """Return a function that cleans a text of a record.

    It removes the values of secret variables, and secrets that have the form of a token. It keeps
    values that follow the name of a secret: a traceback shows lines of code.
    """
    if environ is None:
        environ = os.environ
    remove = remover_for(environ)

    @lru_cache(_CACHED_TEXTS)
    def clean(text: str) -> str:
        return remove_forms(remove(text))

    return clean


def scrubber_of(values: Iterable[str]) -> Callable[[Any], Any]:
    """Return a function that removes some values, and nothing else, from plain data."""
    parts: set[str] = set()
    for value in values:
        parts.update(secret_parts(value))
    remove = remover_of(parts)
    return lambda value: _clean_data(value, remove, ())


def is_secret_value(name: str, value: str) -> bool:
    """Return whether the text of a parameter must not be recorded, for its name or its form."""
    if is_secret(name) and not is_word_of_model(name, value):
        if not is_counted(name) or not is_count(value):
            return True
    return _cleaner_for_record()(value) != value


def words_for_record(words: Sequence[str], secrets: Sequence[str] = ()) -> list[str]:
    """Return a command line as it may be recorded.

    `secrets` are words, or values after an `=`, that are already known to be secret.
    """
    kept_words = []
    previous = ""
    for word in words:
        is_script = _RUNS_SCRIPT.fullmatch(previous) and _LINE_CHARACTERS.search(word)
        if is_script and word not in secrets:  # its assignments end at a blank: see _hide_value
            kept_words.append(word)
        else:
            kept_words.append(_hide_value(word, secrets))
        previous = word
    cleaned: list[str] = _clean_data(kept_words, _cleaner_for_record())
    return cleaned


def secrets_in(words: Sequence[str]) -> list[str]:
    """Return the parts of a command line that are not recorded, if each is one part of a word."""
    secrets = []
    for word, recorded in zip(words, words_for_record(words), strict=True):
        prefix, mark, suffix = recorded.partition(GONE)
        if mark and word.startswith(prefix) and word.endswith(suffix):
            secrets.append(word[len(prefix) : len(word) - len(suffix)])
    return secrets


def environment_for_record(environ: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that differ from those of `base`, as they may be recorded."""
    clean = _cleaner_for_record()
    recorded = {}
    for name, value in environ.items():
        if base.get(name) == value:
            continue
        if _is_secret_variable(name, value):
            recorded[clean(name)] = GONE
        else:
            recorded[clean(name)] = clean(value)
    return recorded


def _is_secret_variable(name: str, value: str) -> bool:
    return is_secret(name) and not is_harmless(name, value) and not is_word_of_model(name, value)


def _cleaner_for_record() -> Clean:
    remove = remover_for(os.environ)
    return lambda text: remove_fields(remove_forms(remove(text)))


# ---- plain data and command lines


def _clean_data(value: Any, clean: Clean, hidden_types: Any = str | int | float) -> Any:
    """Return plain data with clean texts.

    Values of the hidden types are removed if they have the name of a secret.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        cleaned = {}
        for key, inner in value.items():
            name = str(key)
            if _is_hidden(name, inner, hidden_types):
                cleaned[clean(name)] = GONE
            else:
                cleaned[clean(name)] = _clean_data(inner, clean, hidden_types)
        return cleaned
    if isinstance(value, list | tuple):
        words = [_clean_data(inner, clean, hidden_types) for inner in value]
        return _clean_command_line(words)
    return value


def _is_hidden(name: str, value: Any, hidden_types: Any) -> bool:
    if isinstance(value, str | int | float):
        return isinstance(value, hidden_types) and value != "" and hides(name, str(value))
    return bool(value) and is_certain(name)


def _clean_command_line(words: list[Any]) -> list[Any]:
    """Return a list without the values of secret options: a command line is a list.

    A value is the word after an option, or the rest of `token=...`.
    """
    kept_words = []
    previous = None
    for word in words:
        if not isinstance(word, str):
            kept_words.append(word)
        elif _is_secret_option(previous, word):
            kept_words.append(GONE)
        elif re.search(r"\s", word):
            kept_words.append(word)
        else:
            kept_words.append(_hide_value(word, ()))
        previous = word
    return kept_words


def _is_secret_option(option: Any, word: str) -> bool:
    if not isinstance(option, str) or not option.startswith("-") or "=" in option:
        return False
    return not word.startswith("-") and hides_option(option.lstrip("-"), word)


def _hide_value(word: str, secrets: Sequence[str]) -> str:
    """Return a word of a command line without its value, if it is `token=...` or a secret.

    The word is one value with its blanks. In `export A=...` and `one: A=...`, which are no names,
    the value ends at a blank; `remove_fields` looks at those.
    """
    if word in secrets:
        return GONE
    option, equals_sign, value = word.partition("=")
    if not equals_sign:
        return word
    is_name = _NAME.fullmatch(option) is not None
    if value in secrets or (is_name and hides_option(option.lstrip("-"), value)):
        return f"{option}={GONE}"
    return word
