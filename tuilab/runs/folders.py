"""Find the folders that are runs, by their names.

Kept free of slow imports: `tuilab list` and `tuilab runs` load it.
"""

import os
import stat
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress

from tuilab.errors import UsageError
from tuilab.runs.run_name import RunName, by_time
from tuilab.text.display import plural, show


def run_names(root: str) -> list[str]:
    """Return the names of the folders that may be runs, newest first.

    The list is empty if the folder cannot be read. Whether each run has a journal is not looked up:
    this takes a third of the time of `list_folders`.
    """
    with suppress(OSError):
        return sorted(_shown(_folders(root)), key=by_time, reverse=True)
    return []


def list_folders(root: str, known: Container[str] = ()) -> tuple[list[str], list[str]]:
    """Return the names of the runs, newest first, and those of folders passed over.

    The second list has the folders that have the name of a run and are not a run. For known runs,
    it is not looked up whether they still have a journal: with thousands of runs that takes most of
    the time. Raise UsageError if the folder of runs cannot be read; a missing one has no runs.
    """
    try:
        names = _folders(root)
    except FileNotFoundError:
        return [], []
    except OSError as problem:
        step = "name another with --root DIR or TUILAB_ROOT"
        raise UsageError(
            f"cannot read the folder of runs {show(root)}: {problem.strerror}; {step}"
        ) from problem
    runs = [name for name in _shown(names) if name in known or has_journal(root, name)]
    passed_over = []
    if len(runs) < len(names):
        unlisted = sorted(set(names) - set(runs))
        passed_over = [name for name in unlisted if RunName(name).started_s is not None]
    return sorted(runs, key=by_time, reverse=True), passed_over


def _folders(root: str) -> list[str]:
    with os.scandir(root) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _shown(names: Iterable[str]) -> list[str]:
    """Return the names that can be shown and are not hidden."""
    return [name for name in names if name[:1] != "." and name.isprintable()]


def has_journal(root: str, name: str) -> bool:
    """Return whether a folder has a journal of its own and this user may enter it."""
    try:
        return stat.S_ISDIR(os.lstat(f"{root}/{name}/journal").st_mode)
    except OSError:
        return False


def why_not_listed(folders: Sequence[str], roots: Sequence[str]) -> list[str]:
    """Return sentences that say which folders are not listed as runs, and why."""
    sentences = []
    closed = count_closed(folders)
    if closed:
        where = " and ".join(show(root) for root in roots)
        step = "ask their owner, or name your own folder with --root DIR or TUILAB_ROOT"
        sentences.append(f"{plural(closed, 'run')} in {where} cannot be read by you; {step}")
    spoilt = [show(folder, 300) for folder in folders if has_spoilt_journal(folder)]
    if spoilt:
        names = spoilt[:3]
        if len(spoilt) > 3:
            names.append(f"{len(spoilt) - 3} more")
        step = "restore the journal, or delete the folder"
        sentences.append(
            f"no longer a run, as its journal is not a folder: {' and '.join(names)}; {step}"
        )
    return sentences


def count_closed(folders: Sequence[str]) -> int:
    """Return how many of these folders this user may not enter, such as other users' folders."""
    return sum(not os.access(folder, os.X_OK) for folder in folders)


def has_spoilt_journal(folder: str) -> bool:
    """Return whether a file or a link has replaced the journal.

    A run that is being made or deleted has no journal at all, and is not spoilt.
    """
    try:
        return not stat.S_ISDIR(os.lstat(os.path.join(folder, "journal")).st_mode)
    except OSError:
        return False
