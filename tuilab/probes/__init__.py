"""Read the facts about this machine, one file per part of it.

A fact that cannot be read is left out, and `missing` has the reason.

Imports the shared modules and `record`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tuilab.errors import TuilabError
from tuilab.text.display import show


class NotKnown(Exception):
    """A fact cannot be read on this machine; the text is the reason."""


def gather(questions: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Return the answer to each question, and under `missing` the reason for each without one."""
    facts: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, ask in questions.items():
        try:
            facts[name] = ask()
        except Exception as problem:  # a probe that breaks costs its one fact
            missing[name] = reason_of(problem, 200)
    if missing:
        facts["missing"] = missing
    return facts


def reason_of(problem: Exception, limit: int) -> str:
    """Return why a fact is not known, in at most `limit` characters."""
    if isinstance(problem, OSError) and problem.strerror:
        reason = str(problem.strerror)
        if problem.filename:
            reason += f": {problem.filename}"
    elif isinstance(problem, NotKnown | TuilabError):
        reason = str(problem)
    else:
        reason = f"{type(problem).__name__}: {problem}"
    return show(reason, limit)
