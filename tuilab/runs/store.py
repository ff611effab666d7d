"""The folder of runs: where a new run is made, and how a run is found again."""

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
_SURE = 4  # characters: fewer are as easily a slip, or half a variable, as the name of a run
_SURE_BY_TIME = 15  # down to the second: every run begins with the year


def fields(run_dir: Path) -> dict[str, str]:
    """Return which run it is, for a JSON document."""
    return {"run": run_dir.name, "path": str(run_dir)}


def create(scenario: str, under: Path) -> Path:
    """Make the folder of a new run, readable by its owner alone, and return it."""
    run_dir = under / new_name(scenario)
    try:
        under.mkdir(parents=True, exist_ok=True, mode=0o700)
        run_dir.mkdir(mode=0o700)
        for part in ("journal", "artifacts"):
            (run_dir / part).mkdir(mode=0o700)
    except OSError as problem:
        raise CannotRecord(
            f"cannot make a run folder in {show(under)} ({problem.strerror}); name another with --root DIR or TUILAB_ROOT"
        ) from problem
    return run_dir


def cannot_write(folder: Path, why: str) -> CannotRecord:
    """Return the error that says why nothing can be recorded in a folder, and what to do."""
    return CannotRecord(
        f"cannot write to {show(folder)}: {why}; name another folder with --root DIR or TUILAB_ROOT"
    )


def list_runs(under: Path) -> list[Path]:
    """Return the folders of all runs, newest first."""
    return [under / name for name in folders.list_folders(os.fspath(under))[0]]


def changed_at(under: Path) -> float | None:
    """Return when runs last came to a folder or left it; None where there is none."""
    try:
        return os.stat(under).st_mtime
    except OSError:
        return None


def newest(roots: Sequence[Path]) -> list[Path]:
    """Return the runs of several folders, newest first."""
    return sorted(
        (run for root in roots for run in list_runs(root)),
        key=lambda run: by_time(run.name),
        reverse=True,
    )


def not_listed(roots: Sequence[Path]) -> list[str]:
    """Return in a sentence each which runs are passed over, and why."""
    return folders.why_not_listed(_passed_over(roots), [*map(str, roots)])


def _passed_over(roots: Sequence[Path]) -> list[str]:
    """Return the folders that have the name of a run and are not listed as one."""
    found: list[str] = []
    for root in roots:
        with suppress(UsageError):
            found += [os.path.join(root, name) for name in folders.list_folders(os.fspath(root))[1]]
    return found


def find(reference: str, under: Path) -> Path:
    """Return the run that a reference names: the start of its id or folder, `last`, or `last~1` (the one before)."""
    return find_among(reference, [under])


def find_among(reference: str, roots: Sequence[Path]) -> Path:
    """Return the run that a reference means in several folders of runs."""
    if not reference.strip():
        raise UsageError(
            f"the name of a run is empty; use an id, or last; list the runs: {hint(roots, 'runs')}"
        )
    runs = newest(roots)
    if not runs:
        where = " and ".join(map(show, roots))
        none = f"there are no runs in {where} yet; start one: {hint(roots[0], 'run', 'stability', '--headless')}"
        raise UsageError("; ".join(not_listed(roots)) or none)
    if back := _LAST.fullmatch(reference):
        number = int(back[1] or 0)
        if number >= len(runs):
            raise UsageError(
                f"there {'is' if len(runs) == 1 else 'are'} only {plural(len(runs), 'run')}; list them: {hint(roots, 'runs')}"
            )
        return runs[number]
    exact = [run for run in runs if run.name == reference]
    near = exact or [run for run in runs if _may_mean(reference, run.name)]
    if len(near) == 1:
        return near[0]
    if near:
        raise UsageError(
            f"{show(reference)} could be any of {len(near)} runs; add characters, or list the runs: {hint(roots, 'runs')}"
        )
    passed_over = [
        folder for folder in _passed_over(roots) if _may_mean(reference, os.path.basename(folder))
    ]
    unknown = f"no run named {show(reference)}; list all runs: {hint(roots, 'runs')}"
    if reference.startswith("sweep-"):
        unknown = f"{show(reference)} is a sweep, not a run; report, attach and stop take a sweep, other subcommands take a run"
    raise UsageError("; ".join(folders.why_not_listed(passed_over, [*map(str, roots)])) or unknown)


def _may_mean(reference: str, run: str) -> bool:
    return run.startswith(reference) or short_id(run).startswith(reference)


def find_surely(reference: str, roots: Sequence[Path]) -> Path:
    """Return the run that a reference means, for what cannot be taken back: it must be more than a character or two."""
    found = find_among(reference, roots)
    needed = _SURE if short_id(found.name).startswith(reference) else _SURE_BY_TIME
    if len(reference) < needed and not (_LAST.fullmatch(reference) or reference == found.name):
        raise UsageError(
            f"{show(reference)} is too short to name {show(found.name)} safely; give {needed} characters or more"
        )
    return found


def short_id(run: str) -> str:
    """Return the random end of a run's id: enough to name it."""
    return RunName(run).id


def remove(run_dir: Path) -> None:
    """Delete a run's folder, its journal last: one that cannot be deleted to the end is still found, and deleted later."""
    try:
        if not stat.S_ISDIR(os.lstat(run_dir).st_mode):
            raise UsageError(f"{show(run_dir)} is not a run folder")
        filetree.remove(run_dir, last="journal")
    except OSError as problem:
        if not os.path.lexists(run_dir):
            raise UsageError(f"{show(short_id(run_dir.name))} is already deleted") from problem
        at = f" at {show(problem.filename, 100)}" if isinstance(problem.filename, str) else ""
        step = (
            f"; give yourself the right to it: chmod -R u+rwX {show(run_dir)}"
            if problem.errno == errno.EACCES
            else ""
        )
        raise CannotRecord(
            f"cannot delete {show(run_dir)}: {problem.strerror}{at}{step}"
        ) from problem
