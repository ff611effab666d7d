"""The folder of runs: create the folder of a run, find a run by a reference, and delete it."""

import errno
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tuilab.errors import CannotRecord, UsageError
from tuilab.runs import folders
from tuilab.runs.command_line import hint
from tuilab.runs.run_name import RunName, by_time, new_name
from tuilab.storage import filetree
from tuilab.text.display import plural, show

_LAST = re.compile(r"last(?:~([0-9]{1,6}))?")
# Characters with which a reference may name a run that is deleted or stopped. Fewer are as easily a
# slip, or a part of a variable, as the name of a run.
_MIN_SURE_ID = 4
_MIN_SURE_TIME = 15  # down to the second: the names of all runs begin with the year


def fields(run_dir: Path) -> dict[str, str]:
    """Return the name and the path of a run, for a JSON document."""
    return {"run": run_dir.name, "path": str(run_dir)}


def create(scenario: str, under: Path) -> Path:
    """Make the folder of a new run, readable by its owner alone, and return it.

    The folders `journal` and `artifacts` are made in it. Raise CannotRecord if the disk refuses.
    """
    run_dir = under / new_name(scenario)
    try:
        under.mkdir(parents=True, exist_ok=True, mode=0o700)
        run_dir.mkdir(mode=0o700)
        for part in ("journal", "artifacts"):
            (run_dir / part).mkdir(mode=0o700)
    except OSError as problem:
        raise CannotRecord(
            f"cannot make a run folder in {show(under)} ({problem.strerror}); "
            "name another with --root DIR or TUILAB_ROOT"
        ) from problem
    return run_dir


def cannot_write(folder: Path, why: str) -> CannotRecord:
    """Return the error that says why nothing can be recorded in a folder, with the next step."""
    return CannotRecord(
        f"cannot write to {show(folder)}: {why}; name another folder with --root DIR or TUILAB_ROOT"
    )


def list_runs(under: Path) -> list[Path]:
    """Return the folders of all runs, newest first."""
    return [under / name for name in folders.list_folders(os.fspath(under))[0]]


def changed_at(under: Path) -> float | None:
    """Return when a run was last added to a folder or deleted; None if there is no folder."""
    try:
        return os.stat(under).st_mtime
    except OSError:
        return None


def newest(roots: Sequence[Path]) -> list[Path]:
    """Return the runs of several folders, newest first."""
    runs: list[Path] = []
    for root in roots:
        runs += list_runs(root)
    return sorted(runs, key=lambda run: by_time(run.name), reverse=True)


def not_listed(roots: Sequence[Path]) -> list[str]:
    """Return sentences that say which folders are not listed as runs, and why."""
    return folders.why_not_listed(_passed_over(roots), [str(root) for root in roots])


def _passed_over(roots: Sequence[Path]) -> list[str]:
    """Return the folders that have the name of a run and are not listed as one."""
    passed_over: list[str] = []
    for root in roots:
        with suppress(UsageError):
            _, names = folders.list_folders(os.fspath(root))
            passed_over += [os.path.join(root, name) for name in names]
    return passed_over


def find(reference: str, under: Path) -> Path:
    """Return the run that a reference names in one folder, as `find_among` does."""
    return find_among(reference, [under])


def find_among(reference: str, roots: Sequence[Path]) -> Path:
    """Return the run that a reference names in several folders of runs.

    A reference is the start of the id or of the folder of a run, `last`, or `last~1` (the previous
    run). Raise UsageError if it is empty, names no run or may mean several.
    """
    if not reference.strip():
        raise UsageError(
            f"the name of a run is empty; use an id, or last; list the runs: {hint(roots, 'runs')}"
        )
    runs = newest(roots)
    if not runs:
        where = " and ".join(show(root) for root in roots)
        step = hint(roots[0], "run", "stability", "--headless")
        problem = f"there are no runs in {where} yet; start one: {step}"
        raise UsageError("; ".join(not_listed(roots)) or problem)
    if match := _LAST.fullmatch(reference):
        position = int(match[1] or 0)
        if position >= len(runs):
            verb = "is" if len(runs) == 1 else "are"
            raise UsageError(
                f"there {verb} only {plural(len(runs), 'run')}; list them: {hint(roots, 'runs')}"
            )
        return runs[position]
    matches = [run for run in runs if run.name == reference]
    if not matches:
        matches = [run for run in runs if _may_mean(reference, run.name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            f"{show(reference)} could be any of {len(matches)} runs; "
            f"add characters, or list the runs: {hint(roots, 'runs')}"
        )
    raise UsageError(_describe_unknown(reference, roots))


def _describe_unknown(reference: str, roots: Sequence[Path]) -> str:
    """Return why no run has the name in a reference: its folder may not be listed as a run."""
    unlisted = []
    for folder in _passed_over(roots):
        if _may_mean(reference, os.path.basename(folder)):
            unlisted.append(folder)
    sentences = folders.why_not_listed(unlisted, [str(root) for root in roots])
    if sentences:
        return "; ".join(sentences)
    if reference.startswith("sweep-"):
        return (
            f"{show(reference)} is a sweep, not a run; "
            "report, attach and stop take a sweep, other subcommands take a run"
        )
    return f"no run named {show(reference)}; list all runs: {hint(roots, 'runs')}"


def _may_mean(reference: str, run: str) -> bool:
    return run.startswith(reference) or short_id(run).startswith(reference)


def find_surely(reference: str, roots: Sequence[Path]) -> Path:
    """Return the run that a reference names, for an action that cannot be undone.

    UsageError if the reference is so short that it may be a slip.
    """
    run_dir = find_among(reference, roots)
    if _LAST.fullmatch(reference) or reference == run_dir.name:
        return run_dir
    is_id = short_id(run_dir.name).startswith(reference)
    min_characters = _MIN_SURE_ID if is_id else _MIN_SURE_TIME
    if len(reference) < min_characters:
        raise UsageError(
            f"{show(reference)} is too short to name {show(run_dir.name)} safely; "
            f"give {min_characters} characters or more"
        )
    return run_dir


def short_id(run: str) -> str:
    """Return the random end of a run's name, which is enough to name it."""
    return RunName(run).id


def remove(run_dir: Path) -> None:
    """Delete a run's folder, the journal last.

    If this fails halfway, CannotRecord is raised, and the run is still found and can be deleted
    later. Raise UsageError if it is no folder or was deleted already.
    """
    try:
        if not stat.S_ISDIR(os.lstat(run_dir).st_mode):
            raise UsageError(f"{show(run_dir)} is not a run folder")
        filetree.remove(run_dir, last="journal")
    except OSError as problem:
        if not os.path.lexists(run_dir):
            raise UsageError(f"{show(short_id(run_dir.name))} is already deleted") from problem
        message = f"cannot delete {show(run_dir)}: {problem.strerror}"
        if isinstance(problem.filename, str):
            message += f" at {show(problem.filename, 100)}"
        if problem.errno == errno.EACCES:
            message += f"; give yourself the right to it: chmod -R u+rwX {show(run_dir)}"
        raise CannotRecord(message) from problem
