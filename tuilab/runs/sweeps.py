"""Sweeps among the runs of a folder: which points have been run, and which are missing."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuilab.errors import UsageError
from tuilab.record.events import Scalar, Sweep
from tuilab.record.states import RunState
from tuilab.runs import ledger, store
from tuilab.runs.command_line import hint
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.listing.entry import Entry
from tuilab.text import GONE, did_you_mean, show

PREFIX = "sweep-"  # of the id of each: no run is called so
LAST = "last"


@dataclass(frozen=True)
class Begun:
    """A sweep as its runs have it."""

    sweep: Sweep
    runs: list[Path]  # the oldest first
    settled: list[dict[str, Scalar]]  # points that have a result, or get one


def find(reference: str, root: Path) -> Begun:
    """Return the sweep that an id, the start of one, or `last` means."""
    entries = members(root)
    wanted = {entry.sweep for entry in entries if _is_meant(entry.sweep, reference)}
    if reference.removeprefix(PREFIX) == LAST and entries:
        wanted = {entries[-1].sweep}
    if len(wanted) != 1:
        known = list(dict.fromkeys(entry.sweep for entry in entries))
        what = f"could be {len(wanted)} sweeps; add characters" if wanted else f"is no sweep in {show(root)}"
        raise UsageError(f"{show(reference, 40)} {what}{did_you_mean(reference, known)}; {hint(root, 'runs')} shows the runs")
    runs = [entry for entry in entries if entry.sweep in wanted]
    told = [(one, entry) for entry in runs if (one := _sweep_of(root / entry.run)) is not None]
    if not told:
        raise UsageError(f"the runs of {show(reference, 40)} cannot be read any more; begin it again")
    settled = [one.point for one, entry in told if entry.state == RunState.SUCCEEDED or entry.is_running]
    return Begun(told[-1][0], [root / entry.run for entry in runs], settled)


def members(root: Path) -> list[Entry]:
    """Return the runs that are points of a sweep, the oldest first."""
    cache = LedgerCache(root)
    entries = [cache.entry(run_dir) for run_dir in reversed(store.list_runs(root))]
    cache.keep()
    return [entry for entry in entries if entry.sweep]


@contextlib.contextmanager
def as_begun(sweep: Sweep) -> Iterator[None]:
    """Stand where a sweep was begun; UsageError where it cannot be begun again from what is recorded."""
    if any(GONE in word for word in sweep.argv):
        raise UsageError(f"{sweep.id} has a secret in its words, which is kept nowhere; begin it again")
    try:
        with contextlib.chdir(sweep.folder or os.curdir):
            yield
    except (FileNotFoundError, NotADirectoryError, PermissionError) as problem:
        raise UsageError(f"{sweep.id} was begun in {show(sweep.folder)}: {problem.strerror}; begin it again") from problem


def missing(begun: Begun, points: Sequence[Sweep]) -> list[int]:
    """Return at which places of the points of a sweep, as it would be begun now, there is no result yet."""
    if points[0].values != begun.sweep.values:
        raise UsageError(f"{begun.sweep.id} would go through other values now: its scenario has changed; begin it again")
    return [at for at, point in enumerate(points) if point.point not in begun.settled]


def _is_meant(sweep: str, reference: str) -> bool:
    return len(reference) > 3 and (sweep.startswith(reference) or sweep.removeprefix(PREFIX).startswith(reference))


def _sweep_of(run_dir: Path) -> Sweep | None:
    """Return the sweep that a run says it belongs to."""
    try:
        run = ledger.look(run_dir)[0].run
    except (OSError, UsageError):
        return None
    return run.sweep if run else None
