"""What is offered most often when tab is pressed, verbs and scenarios, in the form in which click tells it to each shell.

Kept free of slow imports; for all that is asked otherwise click is loaded, and says the same where both can answer.
"""

import os
import sys
from collections.abc import Mapping, Sequence

from tuilab.cli.front_page import VERBS
from tuilab.text import show

_OF_SCENARIOS = ("run", "show", "check")  # verbs that take some first
_QUOTING = ("'", '"', "\\")
_PATHS = (".", "/", "~")  # as they begin


def answer() -> bool:
    """Print what is offered, and say whether this was a plain question for a verb or a scenario."""
    shell, _, instruction = os.environ["_TUILAB_COMPLETE"].partition("_")
    told = os.environ.get("COMP_WORDS", ""), os.environ.get("COMP_CWORD", "")
    if instruction != "complete" or shell not in ("bash", "zsh", "fish") or not all(map(_is_plain, told)):
        return False
    before, begun = _words(shell, *told)
    found = _offered(before, begun)
    if found is None:
        return False
    lines = [_line(shell, word, show(help, 200)) for word, help in found.items() if is_offered(word, shell)]
    sys.stdout.flush()
    sys.stdout.buffer.write("\n".join(lines).encode() + b"\n")
    return True


def scenario_names(extra: Sequence[str] = ()) -> dict[str, str]:
    """Return what means scenarios: all of them, a topic, or one, and what each is."""
    from tuilab.catalogue import catalog

    listed, _ = catalog.listed(extra)
    return {"all": "every scenario", **{one.topic: "a topic" for one in listed}, **{one.id: one.title for one in listed}}


def is_path(begun: str) -> bool:
    """Say whether a path is begun, and no name."""
    return begun.startswith(_PATHS) or os.sep in begun


def is_offered(word: str, shell: str) -> bool:
    """Say whether a word can be shown and taken: bash puts it on the line as it is, without blanks and $(...)."""
    is_safe = word[:1] != "~" and all(character.isalnum() or character in "_@%+=:,./~-" for character in word)
    return word.isprintable() and (shell != "bash" or (is_safe and bool(word)))


def _is_plain(words: str) -> bool:
    """Say whether the words of a line are those between its blanks."""
    return words.isprintable() and not any(mark in words for mark in _QUOTING)


def _words(shell: str, line: str, at: str) -> tuple[list[str], str]:
    """Return the words that stand before the one that is begun, and that one."""
    words = line.split()
    if shell == "fish":  # which tells the word that is begun twice
        begun = next(iter(at.split()), "")
        return (words[1:-1] if begun and words[1:][-1:] == [begun] else words[1:]), begun
    number = int(at) if at.isdecimal() else 0
    return words[1:number], words[number] if number < len(words) else ""


def _offered(before: Sequence[str], begun: str) -> dict[str, str] | None:
    """Return words with what each means; None for what click has to find out."""
    if begun.startswith("-") or "=" in begun:
        return None
    if not before:
        return _beginning_with(begun, VERBS) or None
    if len(before) == 1 and before[0] in _OF_SCENARIOS and not is_path(begun):
        found = _beginning_with(begun, scenario_names())
        return None if any(":" in word for word in found) else found  # which not every click tells alike
    return None


def _beginning_with(begun: str, known: Mapping[str, str]) -> dict[str, str]:
    return {word: help for word, help in known.items() if word.startswith(begun)}


def _line(shell: str, word: str, help: str) -> str:
    if shell == "zsh":
        return f"plain\n{word}\n{help or '_'}"
    return f"plain,{word}\t{help}" if shell == "fish" and help else f"plain,{word}"
