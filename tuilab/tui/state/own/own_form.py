"""What the form of a command of the user's says: the run as it would be ordered now, and what is wrong with it."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tuilab.catalogue.params import parse_duration
from tuilab.errors import UsageError
from tuilab.runs.command_line import line, root_option
from tuilab.text.display import GONE

if TYPE_CHECKING:
    from tuilab.engine.messages import CommandArm, RunOrder

Text = Callable[[str], str]  # what stands in a field
_RACING = ("arm", "claim", "measure", "repeat", "budget")
_SEVERAL = ("metric", "arm", "claim")


def run_words(text: Text, root: Path) -> list[str]:
    """Return the words of the command that runs a form; UsageError when it cannot be run as it is."""
    _order(text, root, [])
    options = []
    for name in (
        "name",
        "watch",
        "metric",
        "step-of",
        "timeout",
        *(_RACING if _arms(text) else ()),
    ):
        values = _several(text, name) if name in _SEVERAL else [text(name).strip()]
        options += [
            word
            for value in values
            if value and (name, value) != ("watch", "all")
            for word in (f"--{name}", value)
        ]
    options += ["--different-learning"] if _arms(text) and not _has_guard(text) else []
    return [
        "tuilab",
        "ab" if _arms(text) else "exec",
        *options,
        *root_option(root),
        "--",
        *_command(text),
    ]


def run_line(text: Text, root: Path) -> str:
    """Return the line that does what a form says, in its folder."""
    folder = text("folder").strip()
    words = line(run_words(text, root))
    return f"cd {line([folder])} && {words}" if folder and folder != os.getcwd() else words


def order(text: Text, root: Path) -> "RunOrder":
    """Return what is run of a form."""
    return _order(text, root, run_words(text, root)[1:])


def _order(text: Text, root: Path, argv: list[str]) -> "RunOrder":
    from tuilab.commands import arms, make_order
    from tuilab.engine.messages import CommandOrder

    raced = _arms(text)
    budget = text("budget").strip()
    repeat = text("repeat").strip()
    command = CommandOrder(
        words=_command(text),
        folder=os.path.expanduser(text("folder").strip()),
        arms=raced,
        claims=arms.parse_claims(_several(text, "claim"), raced, text("measure").strip())
        if raced
        else [],
        has_guard=_has_guard(text),
        measure=text("measure").strip() if raced else "",
        watch=text("watch"),
        metrics=_several(text, "metric"),
        step_of=text("step-of").strip(),
    )
    timeout = text("timeout").strip()
    return make_order.order(
        command,
        root=root,
        name=text("name").strip(),
        timeout_s=parse_duration(timeout) if timeout else None,
        repeats=int(repeat) if repeat and raced else None,
        budget_s=parse_duration(budget) if budget and raced else None,
        argv=argv,
    )


def problem(text: Text, key: str) -> str:
    """Return what is wrong in a field of a command's form; nothing when it can be used."""
    try:
        _check(text, key, text(key).strip())
    except UsageError as found:
        return str(found)
    return ""


def _check(text: Text, key: str, typed: str) -> None:
    if key == "command":
        _command(text)
    elif key == "folder" and typed and not os.path.isdir(os.path.expanduser(typed)):
        raise UsageError("there is no such folder")
    elif key == "name" and typed:
        from tuilab.commands.make_order import plain_name

        plain_name(typed)
    elif key == "metric":
        from tuilab.commands.output.patterns import split

        for metric in _several(text, key):
            split(metric)
    elif key in ("timeout", "budget") and typed:
        parse_duration(typed)
    elif key == "repeat" and typed and not (typed.isdecimal() and 1 <= int(typed) <= 1000):
        raise UsageError("a number from 1 to 1000")
    elif key == "arm":
        _arms(text)
    elif key == "claim" and typed and not problem(text, "arm"):
        from tuilab.commands.arms import parse_claims

        if not (raced := _arms(text)):
            raise UsageError("a claim needs arms; fill in arm")
        parse_claims(_several(text, key), raced)


def _command(text: Text) -> list[str]:
    """Return the words of a command; UsageError where there are none, or a secret is missing among them."""
    try:
        words = shlex.split(text("command"))
    except ValueError as found:
        raise UsageError(f"{str(found).lower()}: close the quote") from found
    if not words:
        raise UsageError("type a command, for example python train.py")
    if any(GONE in word for word in words):
        raise UsageError(f"replace {GONE} with the secret")
    return words


def _arms(text: Text) -> "list[CommandArm]":
    """Return the arms; the command as it is comes first where none of them is that."""
    from tuilab.commands import arms

    texts = _several(text, "arm")
    if texts and all(one.partition(":")[2].strip() for one in texts):
        texts = [arms.BASE, *texts]
    return arms.parse(texts) if texts else []


def _has_guard(text: Text) -> bool:
    return text("learning") != "different"


def _several(text: Text, key: str) -> list[str]:
    return [part.strip() for part in text(key).split(";") if part.strip()]
