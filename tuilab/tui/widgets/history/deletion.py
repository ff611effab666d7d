"""Deleting runs from a screen: what is asked before, and what is said of it."""

import os
from collections.abc import Sequence
from pathlib import Path

from tuilab.errors import TuilabError
from tuilab.runs import deleting
from tuilab.runs.entry import RunEntry
from tuilab.text.display import plural
from tuilab.text.words import size
from tuilab.tui.widgets.history.runline import named
from tuilab.tui.widgets.question import ConfirmDialog


def why_not(root: Path, entries: Sequence[RunEntry]) -> str:
    """Return why one of some runs must not be deleted, or nothing; processes are looked for, which takes a moment."""
    return next(filter(None, (deleting.why_not(root / entry.run, entry) for entry in entries)), "")


def question_about(entries: Sequence[RunEntry]) -> ConfirmDialog:
    """Return the question whether runs are to be deleted."""
    title = f"Delete {plural(len(entries), 'run')}?"
    return ConfirmDialog(
        title, named(entries), f"{_freed(entries)} on disk. This cannot be undone."
    )


def delete(root: Path, runs: Sequence[str]) -> str:
    """Delete those of some runs that are still there, and say so.

    TuilabError where one must not be deleted by now, or cannot be, says how many were.
    """
    there, done = [run for run in runs if os.path.lexists(root / run)], 0
    try:
        for run in there:
            deleting.delete(root / run)
            done += 1
    except TuilabError as problem:
        raise TuilabError(f"deleted {done} of {plural(len(runs), 'run')}: {problem}") from problem
    had_gone = f"; {len(runs) - done} already gone" if done < len(runs) else ""
    return f"deleted {plural(done, 'run')}{had_gone}"


def _freed(entries: Sequence[RunEntry]) -> str:
    """Return the bytes of some runs in words, as far as they are known."""
    known = [entry.bytes_total for entry in entries if entry.bytes_total is not None]
    if not known:
        return "n/a"
    return size(sum(known)) if len(known) == len(entries) else f"more than {size(sum(known))}"
