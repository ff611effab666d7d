"""Sweeps among the runs of a folder: which there are, which points have been run, and which are missing."""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from tuilab.catalogue.grid import MOST
from tuilab.errors import TuilabError, UsageError
from tuilab.record import presence
from tuilab.record.events import Identity, RunStarted, Sweep
from tuilab.record.origin.imported import is_imported
from tuilab.record.states import RunState
from tuilab.runs import read_entry, store
from tuilab.runs.command_line import hint
from tuilab.runs.entry import RunEntry, sweeps_among
from tuilab.runs.index import Index
from tuilab.storage.files import can_only_be_ours
from tuilab.text.display import GONE, did_you_mean, plural, show

PREFIX = "sweep-"  # of the id of each: no run is called so
_LAST = re.compile(rf"(?:{PREFIX})?last(?:~([0-9]{{1,6}}))?")
LEFT = "not begun"  # what is told of points without a run


@dataclass(frozen=True)
class Begun:
    """A sweep as its runs have it."""

    sweep: Sweep
    root: Path
    entries: list[RunEntry]  # of its runs, the oldest first
    source: Path  # the run whose record says all this
    is_imported: bool = False  # what it would do is told by an archive alone

    @property
    def runs(self) -> list[Path]:
        return [self.root / entry.run for entry in self.entries]

    @property
    def going_on(self) -> list[RunEntry]:
        """Its runs that go on, or wait."""
        return [entry for entry in self.entries if entry.is_running]

    @property
    def front(self) -> Identity | None:
        """Who begins one point after another, as far as that can be seen from here."""
        front = None if self.is_imported else self.sweep.front
        return front if front and presence.presence(front) == "alive" else None

    @property
    def counts(self) -> Counter[str]:
        """How many points are in which state: one that succeeded once did, else the newest run of it counts."""
        states: dict[str, str] = {}
        for entry in self.entries:
            point = repr(sorted(entry.point.items()))
            states[point] = (
                RunState.SUCCEEDED if states.get(point) == RunState.SUCCEEDED else entry.state
            )
        left = prod(map(len, self.sweep.values.values())) - len(states)
        return Counter(states.values()) + Counter({LEFT: left})


def find(reference: str, root: Path) -> Begun:
    """Return the sweep that an id, the start of one, `last`, or `last~1` (the one before) means."""
    entries = members(root)
    known = sweeps_among(reversed(entries))
    back = _LAST.fullmatch(reference)
    wanted = (
        [one for one in known if _is_meant(one, reference)]
        if back is None
        else known[(at := int(back[1] or 0)) : at + 1]
    )
    if len(wanted) != 1:
        what = (
            f"could be {len(wanted)} sweeps; add characters"
            if wanted
            else f"is not a sweep in {show(root)}"
        )
        raise UsageError(
            f"{show(reference, 40)} {what}{did_you_mean(reference, known)}; list all sweeps: {hint(root, 'sweep')}"
        )
    if (found := _begun([entry for entry in entries if entry.sweep in wanted], root)) is None:
        raise UsageError(
            f"the runs of {show(reference, 40)} can no longer be read; start the sweep again"
        )
    return found


def newest(root: Path, most: int) -> tuple[list[Begun], int]:
    """Return the newest sweeps of a folder, and how many there are."""
    runs: dict[str, list[RunEntry]] = {}
    for entry in members(root):
        runs[entry.sweep] = [
            *runs.pop(entry.sweep, []),
            entry,
        ]  # so that the one with the newest run comes last
    found = (_begun(entries, root) for entries in list(runs.values())[: -most - 1 : -1])
    return [one for one in found if one], len(runs)


def describe_counts(counts: Counter[str]) -> str:
    """Return how many points are in which state: `2 of 5 done, 1 running, 2 queued`."""
    others = [f"{count} {state}" for state, count in counts.items() if state != RunState.SUCCEEDED]
    return ", ".join(
        [f"{counts[RunState.SUCCEEDED]} of {plural(counts.total(), 'point')} done", *others]
    )


def members(root: Path) -> list[RunEntry]:
    """Return the runs that are points of a sweep, the oldest first."""
    index = Index(root)
    entries = [index.entry(run_dir.name) for run_dir in reversed(store.list_runs(root))]
    index.save()
    return [entry for entry in entries if entry.sweep]


@contextlib.contextmanager
def as_begun(begun: Begun) -> Iterator[None]:
    """Stand where a sweep was begun; UsageError where it cannot be begun again from what is recorded."""
    sweep = begun.sweep
    if begun.is_imported:
        raise UsageError(
            f"{sweep.id} comes from an archive, and commands from archives are never run; start your own sweep"
        )
    if _distrust(begun.source):
        raise UsageError(
            f"{sweep.id}: another user may have written {show(str(begun.source))}, so its command is not run; "
            "start your own sweep"
        )
    if any(GONE in word for word in sweep.argv):
        raise UsageError(
            f"{sweep.id} cannot be resumed: its command line contains a secret, which tuilab does not store; start it again"
        )
    try:
        with contextlib.chdir(sweep.folder or os.curdir):
            yield
    except (FileNotFoundError, NotADirectoryError, PermissionError) as problem:
        raise UsageError(
            f"{sweep.id} was started in {show(sweep.folder)}: {problem.strerror}; start it again"
        ) from problem


def missing(begun: Begun, points: Sequence[Sweep]) -> list[int]:
    """Return at which places of the points of a sweep, as it would be begun now, there is no result yet."""
    if points[0].values != begun.sweep.values:
        raise UsageError(
            f"{begun.sweep.id} would use other values now, because its scenario has changed; start a new sweep"
        )
    last = [
        entry for entry in begun.entries if entry.state == RunState.SUCCEEDED or entry.is_running
    ]
    settled = [
        one.point for entry in last if (one := _sweep_of(begun.root / entry.run))
    ]  # what is known may be damaged since
    return [at for at, point in enumerate(points) if point.point not in settled]


def _is_meant(sweep: str, reference: str) -> bool:
    begun = reference.removeprefix(PREFIX)
    return len(begun) > 2 and sweep.removeprefix(PREFIX).startswith(begun)


def _begun(entries: list[RunEntry], root: Path) -> Begun | None:
    """Return a sweep by its runs; None where none of them can be read any more."""
    newest_first = entries[::-1]
    for entry in sorted(newest_first, key=lambda entry: _distrust(root / entry.run)):
        run_dir = root / entry.run
        if sweep := _sweep_of(run_dir):
            return Begun(sweep, root, entries, run_dir, is_imported(run_dir))
    return None


def _distrust(run_dir: Path) -> int:
    """Return how little a run is believed: 0 if it is ours, 1 if another user may have written it, 2 for an archive."""
    if is_imported(run_dir):
        return 2
    try:
        return int(not can_only_be_ours(os.lstat(run_dir)))
    except OSError:
        return 1


def _sweep_of(run_dir: Path) -> Sweep | None:
    """Return the sweep that a run says it belongs to."""
    try:
        run = read_entry.read_summary(run_dir)[0].run
    except (OSError, TuilabError):
        return None
    return sweep_in(run)


def sweep_in(run: RunStarted | None) -> Sweep | None:
    """Return the sweep that a run is a point of; one of more points than there can be is none, whatever a record says."""
    sweep = run.sweep if run else None
    return sweep if sweep and prod(map(len, sweep.values.values())) <= MOST else None
