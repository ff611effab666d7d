"""Delete runs from a screen: the question before it and the report after it."""

import os
from collections.abc import Sequence
from pathlib import Path

from tuilab.errors import TuilabError
from tuilab.runs import deleting
from tuilab.runs.entry import RunEntry
from tuilab.text.display import plural
from tuilab.text.words import size
from tuilab.tui.widgets.history.runline import describe_runs
from tuilab.tui.widgets.question import ConfirmDialog


def why_not(root: Path, entries: Sequence[RunEntry]) -> str:
    """Return why one of the runs must not be deleted, or nothing.

    This looks for their processes, which takes a moment.
    """
    for entry in entries:
        reason = deleting.why_not(root / entry.run, entry)
        if reason:
            return reason
    return ""


def question_about(entries: Sequence[RunEntry]) -> ConfirmDialog:
    """Return the question whether to delete the runs."""
    title = f"Delete {plural(len(entries), 'run')}?"
    note = f"{_describe_size(entries)} on disk. This cannot be undone."
    return ConfirmDialog(title, describe_runs(entries), note)


def delete(root: Path, runs: Sequence[str]) -> str:
    """Delete the runs that still exist, and return a sentence that counts them.

    Raise TuilabError if a run cannot or must not be deleted. The error says how many were deleted
    before it.
    """
    existing = [run for run in runs if os.path.lexists(root / run)]
    deleted = 0
    try:
        for run in existing:
            deleting.delete(root / run)
            deleted += 1
    except TuilabError as problem:
        raise TuilabError(
            f"deleted {deleted} of {plural(len(runs), 'run')}: {problem}"
        ) from problem
    sentence = f"deleted {plural(deleted, 'run')}"
    if deleted < len(runs):
        sentence += f"; {len(runs) - deleted} already gone"
    return sentence


def _describe_size(entries: Sequence[RunEntry]) -> str:
    """Return the total size of the runs in words, at least of those whose size is known."""
    sizes = [entry.bytes_total for entry in entries if entry.bytes_total is not None]
    if not sizes:
        return "n/a"
    total = size(sum(sizes))
    if len(sizes) < len(entries):
        return f"more than {total}"
    return total
