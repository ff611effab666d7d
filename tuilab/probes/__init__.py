"""What this box is, one file per part of it. A fact that cannot be learnt is left out, and `missing` says why.

Imports the shared modules and `record`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tuilab.errors import TuilabError
from tuilab.text.display import show


class NotKnown(Exception):
    """The box does not tell; the text is why."""


def gather(questions: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Return the answer to each question; one that has no answer is named under `missing` with the reason."""
    facts: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, ask in questions.items():
        try:
            facts[name] = ask()
        except Exception as problem:  # a probe that breaks costs its one fact
            missing[name] = reason_of(problem, 200)
    return {**facts, "missing": missing} if missing else facts


def reason_of(problem: Exception, limit: int) -> str:
    """Return why a fact is not known, in at most `limit` characters."""
    if isinstance(problem, OSError) and problem.strerror:
        return show(
            f"{problem.strerror}: {problem.filename}" if problem.filename else problem.strerror,
            limit,
        )
    return show(
        problem
        if isinstance(problem, NotKnown | TuilabError)
        else f"{type(problem).__name__}: {problem}",
        limit,
    )
