"""The content of the form of a user's command: the next run, and what is wrong with it."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tuilab.catalogue.params import parse_duration
from tuilab.defaults import MAX_REPEATS
from tuilab.errors import UsageError
from tuilab.runs.command_line import line, root_option
from tuilab.text.display import GONE

if TYPE_CHECKING:
    from tuilab.engine.messages import CommandArm, RunOrder

T = TypeVar("T")
Text = Callable[[str], str]
"""A function that returns the text of a field."""
_OPTIONS = ("name", "watch", "metric", "step-of", "timeout")
_RACE_OPTIONS = ("arm", "claim", "measure", "repeat", "budget")
_LISTS = ("metric", "arm", "claim")  # fields of several values


def run_words(text: Text, root: Path) -> list[str]:
    """Return the words of the command that runs a form.

    Raise UsageError if the form has a wrong value.
    """
    _order(text, root, [])  # only for its error: the order is not used
    is_race = bool(_arms(text))
    subcommand = "ab" if is_race else "exec"
    names = _OPTIONS + _RACE_OPTIONS if is_race else _OPTIONS
    options = []
    for name in names:
        for value in _option_values(text, name):
            options += [f"--{name}", value]
    if is_race and not _must_learn_the_same(text):
        options.append("--different-learning")
    return ["tuilab", subcommand, *options, *root_option(root), "--", *_command(text)]


def _option_values(text: Text, name: str) -> list[str]:
    """Return the values of an option; none if its field is empty or has the default."""
    if name in _LISTS:
        return _values(text, name)
    value = text(name).strip()
    is_default = name == "watch" and value == "all"
    if not value or is_default:
        return []
    return [value]


def run_line(text: Text, root: Path) -> str:
    """Return the command line that runs a form in its folder."""
    command = line(run_words(text, root))
    folder = text("folder").strip()
    if not folder or folder == os.getcwd():
        return command
    return f"cd {line([folder])} && {command}"


def order(text: Text, root: Path) -> "RunOrder":
    """Return the order to run a form. Raise UsageError if the form has a wrong value."""
    return _order(text, root, run_words(text, root)[1:])


def _order(text: Text, root: Path, argv: list[str]) -> "RunOrder":
    """Return the order to run a form. Raise UsageError if the form has a wrong value.

    `argv` is the command line that does the same; it is recorded with the run.
    """
    from tuilab.commands import arms, make_order
    from tuilab.engine.messages import CommandOrder

    race_arms = _arms(text)
    words = _command(text)
    claims = []
    measure = ""
    if race_arms:
        measure = text("measure").strip()
        claims = arms.parse_claims(_values(text, "claim"), race_arms, measure)
    command = CommandOrder(
        words=words,
        folder=os.path.expanduser(text("folder").strip()),
        arms=race_arms,
        claims=claims,
        has_guard=_must_learn_the_same(text),
        measure=measure,
        watch=text("watch"),
        metrics=_values(text, "metric"),
        step_of=text("step-of").strip(),
    )
    timeout_s = _parse(text, "timeout", parse_duration)
    repeats = None
    budget_s = None
    if race_arms:
        repeats = _parse(text, "repeat", _parse_repeats)
        budget_s = _parse(text, "budget", parse_duration)
    return make_order.order(
        command,
        root=root,
        name=text("name").strip(),
        timeout_s=timeout_s,
        repeats=repeats,
        budget_s=budget_s,
        argv=argv,
    )


def _parse(text: Text, key: str, parse: Callable[[str], T]) -> T | None:
    """Return the parsed text of a field; None if it is empty."""
    typed = text(key).strip()
    if not typed:
        return None
    return parse(typed)


def _parse_repeats(typed: str) -> int:
    """Return the number of repeats. Raise UsageError if the text is no number in the range."""
    is_short = len(typed) <= len(str(MAX_REPEATS))  # Python refuses to parse thousands of digits
    if is_short and typed.isdecimal() and 1 <= int(typed) <= MAX_REPEATS:
        return int(typed)
    raise UsageError(f"a number from 1 to {MAX_REPEATS}")


def problem(text: Text, key: str) -> str:
    """Return what is wrong with a field, or nothing."""
    try:
        _check(text, key, text(key).strip())
    except UsageError as error:
        return str(error)
    return ""


def _check(text: Text, key: str, typed: str) -> None:
    """Raise UsageError if the text of a field is wrong; `typed` is the text without outer spaces.

    Most fields may be empty. A claim is not checked while the arms (variants) are wrong.
    """
    if key == "command":
        _command(text)
    elif key == "folder" and typed and not os.path.isdir(os.path.expanduser(typed)):
        raise UsageError("there is no such folder")
    elif key == "name" and typed:
        from tuilab.commands.make_order import plain_name

        plain_name(typed)
    elif key == "metric":
        from tuilab.commands.output.patterns import split

        for metric in _values(text, key):
            split(metric)
    elif key in ("timeout", "budget") and typed:
        parse_duration(typed)
    elif key == "repeat" and typed:
        _parse_repeats(typed)
    elif key == "arm":
        _arms(text)
    elif key == "claim" and typed and not problem(text, "arm"):
        from tuilab.commands.arms import parse_claims

        race_arms = _arms(text)
        if not race_arms:
            raise UsageError("a claim needs arms; fill in arm")
        parse_claims(_values(text, key), race_arms)


def _command(text: Text) -> list[str]:
    """Return the words of the command.

    Raise UsageError if there are none, or if a secret was removed from them.
    """
    try:
        words = shlex.split(text("command"))
    except ValueError as error:
        raise UsageError(f"{str(error).lower()}: close the quote") from error
    if not words:
        raise UsageError("type a command, for example python train.py")
    if any(GONE in word for word in words):
        raise UsageError(f"replace {GONE} with the secret")
    return words


def _arms(text: Text) -> "list[CommandArm]":
    """Return the arms. If none of them is the unchanged command, it is added as the first."""
    from tuilab.commands import arms

    texts = _values(text, "arm")
    if not texts:
        return []
    changes = [arm.partition(":")[2].strip() for arm in texts]
    if all(changes):
        texts.insert(0, arms.BASE)
    return arms.parse(texts)


def _must_learn_the_same(text: Text) -> bool:
    return text("learning") != "different"


def _values(text: Text, key: str) -> list[str]:
    """Return the values of a field that are separated by semicolons."""
    parts = [part.strip() for part in text(key).split(";")]
    return [part for part in parts if part]
