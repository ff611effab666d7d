"""Removes secrets from what is recorded or given to others: by name, by form, and by the values of secret variables.

`scrub` is for what leaves this machine: it also removes words that look random, and the home folder. The other functions are
for the record of a run, which has to say as exactly as possible what ran.

Some secrets stay: a value of fewer than 6 characters away from its name, a value that is split, cut or encoded in another way
than for a URL or in base64, and a secret in a sentence. A number after a name that counts tokens or keys is no secret, and
neither is `none`. A word after `pad_token`, `lr_key` and the like is the token or key of a model, if people can pronounce it or
it stands in brackets.
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
from tuilab.scrub.values import pieces, remover, removing
from tuilab.text.display import GONE as GONE

Clean = Callable[[str], str]

_REMEMBERED = 2048  # texts
_LONGEST_PATH = 4096
_NAME = re.compile(r"[-+]{0,2}[A-Za-z_][\w.-]{0,100}")
_RUNS_SCRIPT = re.compile(r"-[a-z]{0,5}c")  # bash -c, bash -lc, python -c: the next word is code
_IS_LINE = re.compile(r"[\s;&|]")
_PATH_END = re.compile(r"[\s\"'`=:;,|<>()\[\]{}]")


def scrub(value: Any, environ: Mapping[str, str] | None = None) -> Any:
    """Return plain data as it may be handed on; the values of this process's secret variables go wherever they stand."""
    return scrubber(environ)(value)


def scrubber(
    environ: Mapping[str, str] | None = None, *, keeps_numbers: bool = False
) -> Callable[[Any], Any]:
    """Return what `scrub` is for much data; it may keep numbers, whatever they are called."""
    known = os.environ if environ is None else environ
    remove = remover(known)
    home = known.get("HOME", "").rstrip("/")
    is_home = re.compile(rf"{re.escape(home)}(?=/|$|[^\w.-]|[.-](?!\w))")

    def clean(text: str) -> str:
        text = remove_random_words(remove_fields(remove_forms(remove(text))))
        return (
            is_home.sub(lambda at: "~" if _begins_path(text, at.start()) else at[0], text)
            if len(home) > 1
            else text
        )

    clean = lru_cache(_REMEMBERED)(clean)  # the same few words stand in every record
    return lambda value: _walk(value, clean, str if keeps_numbers else str | int | float)


def cleaner_of_texts(environ: Mapping[str, str] | None = None) -> Clean:
    """Return what takes the values of secret variables, and what has the form of a token, out of a text of a record.

    What stands behind the name of a secret stays: a traceback shows lines of code.
    """
    remove = remover(os.environ if environ is None else environ)
    return lru_cache(_REMEMBERED)(lambda text: remove_forms(remove(text)))


def scrubber_of(values: Iterable[str]) -> Callable[[Any], Any]:
    """Return a function that takes some values, and nothing else, out of plain data."""
    remove = removing({piece for value in values for piece in pieces(value)})
    return lambda value: _walk(value, remove, ())


def is_secret_value(name: str, value: str) -> bool:
    """Say whether the text that was given for a parameter must not be recorded, for its name or for what it looks like."""
    is_told = is_secret(name) and not (is_counted(name) and is_count(value))
    return (is_told and not is_word_of_model(name, value)) or _clean_for_record()(value) != value


def words_for_record(words: Sequence[str], secrets: Sequence[str] = ()) -> list[str]:
    """Return a command line as it may be recorded; `secrets` are words, or what stands behind their `=`, that are known."""
    kept = []
    for at, word in enumerate(words):
        is_script = (
            at > 0
            and _RUNS_SCRIPT.fullmatch(words[at - 1]) is not None
            and _IS_LINE.search(word) is not None
        )
        kept.append(word if is_script and word not in secrets else _without(word, secrets))
    cleaned: list[str] = _walk(kept, _clean_for_record())
    return cleaned


def secrets_in(words: Sequence[str]) -> list[str]:
    """Return what is not recorded of a command line, as far as that is one piece of a word."""
    found = []
    for word, kept in zip(words, words_for_record(words), strict=True):
        before, is_taken, behind = kept.partition(GONE)
        if is_taken and word.startswith(before) and word.endswith(behind):
            found.append(word[len(before) : len(word) - len(behind)])
    return found


def environment_for_record(given: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment differs from the one that it is added to, as it may be recorded."""
    clean = _clean_for_record()
    new = {name: value for name, value in given.items() if base.get(name) != value}
    return {
        clean(name): GONE if _is_secret_variable(name, value) else clean(value)
        for name, value in new.items()
    }


def _is_secret_variable(name: str, value: str) -> bool:
    return is_secret(name) and not is_harmless(name, value) and not is_word_of_model(name, value)


def _begins_path(text: str, at: int) -> bool:
    """Say whether a path begins here, and does not go on: `/root` is no home in `/mnt/root`, but it is in `-I/root`."""
    before = _PATH_END.split(text[max(at - _LONGEST_PATH, 0) : at])[-1]
    return "/" not in before or before == "//"


def _without(word: str, secrets: Sequence[str]) -> str:
    if word in secrets:
        return GONE
    option, is_given, value = word.partition("=")
    if not is_given:
        return word
    is_name = (
        _NAME.fullmatch(option) is not None
    )  # in `export A=...` or `one: A=...` the value ends at a blank
    is_secret = value in secrets or (is_name and hides_option(option.lstrip("-"), value))
    return (
        f"{option}={GONE}" if is_secret else word
    )  # a word of a list is one value, with its blanks


def _clean_for_record() -> Clean:
    remove = remover(os.environ)
    return lambda text: remove_fields(remove_forms(remove(text)))


def _walk(value: Any, clean: Clean, hidden: Any = str | int | float) -> Any:
    """Return plain data with clean texts, and without the values of `hidden` kinds that have the name of a secret."""
    if isinstance(value, dict):
        return {
            clean(str(name)): GONE
            if _is_hidden(str(name), inner, hidden)
            else _walk(inner, clean, hidden)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return _list([_walk(inner, clean, hidden) for inner in value])
    return clean(value) if isinstance(value, str) else value


def _is_hidden(name: str, inner: Any, hidden: Any) -> bool:
    if isinstance(inner, str | int | float):
        return isinstance(inner, hidden) and inner != "" and hides(name, str(inner))
    return bool(inner) and is_certain(name)


def _list(words: list[Any]) -> list[Any]:
    """Remove the word after an option that is called like a secret, and the value of `token=...`: a command line is a list."""
    kept = []
    for at, word in enumerate(words):
        if at and _is_secret_option(words[at - 1], word):
            kept.append(GONE)
        elif isinstance(word, str) and not re.search(r"\s", word):
            kept.append(_without(word, ()))
        else:
            kept.append(word)
    return kept


def _is_secret_option(option: Any, word: Any) -> bool:
    is_option = (
        isinstance(option, str)
        and option.startswith("-")
        and "=" not in option
        and isinstance(word, str)
    )
    return is_option and not word.startswith("-") and hides_option(option.lstrip("-"), word)
