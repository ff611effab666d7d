"""Which folders are runs, by their names; kept free of slow imports, as `tuilab runs` looks through all of them."""

import os
import stat
from collections.abc import Sequence

from tuilab.errors import UsageError
from tuilab.runs.run_name import RunName, by_time
from tuilab.text import plural, show


def look(root: str) -> tuple[list[str], list[str]]:
    """Return the names of the runs in a folder, newest first, and of those that have the name of a run and are passed over."""
    try:
        with os.scandir(root) as entries:
            names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return [], []
    except OSError as problem:
        step = "name another with --root DIR or TUILAB_ROOT"
        raise UsageError(f"cannot read the folder of runs {show(root)}: {problem.strerror}; {step}") from problem
    runs = [name for name in names if _is_run(root, name)]
    others = sorted({*names} - {*runs}) if len(runs) < len(names) else []
    return sorted(runs, key=by_time, reverse=True), [name for name in others if RunName(name).started_s is not None]


def _is_run(root: str, name: str) -> bool:
    """Say whether a folder is a run: one with a name that can be shown and a journal of its own that this user may enter."""
    try:
        return name.isprintable() and stat.S_ISDIR(os.lstat(f"{root}/{name}/journal").st_mode)
    except OSError:
        return False


def why_not_listed(folders: Sequence[str], roots: Sequence[str]) -> list[str]:
    """Return in a sentence each which folders are passed over, and why."""
    number, where = count_closed(folders), " and ".join(map(show, roots))
    step = "ask their owner, or name your own folder with --root DIR or TUILAB_ROOT"
    told = [f"{plural(number, 'run')} in {where} cannot be read by you; {step}"] if number else []
    if spoilt := [show(folder, 300) for folder in folders if has_spoilt_journal(folder)]:
        names = " and ".join([*spoilt[:3], *([f"{len(spoilt) - 3} more"] if spoilt[3:] else [])])
        told.append(f"no longer a run, as its journal is not a folder: {names}; restore the journal, or delete the folder")
    return told


def count_closed(folders: Sequence[str]) -> int:
    """Return how many of these folders this user may not enter: those of others on a shared box."""
    return sum(not os.access(folder, os.X_OK) for folder in folders)


def has_spoilt_journal(folder: str) -> bool:
    """Say whether a file or a link stands where the journal was; a run that is being made, or deleted, has none."""
    try:
        return not stat.S_ISDIR(os.lstat(os.path.join(folder, "journal")).st_mode)
    except OSError:
        return False
