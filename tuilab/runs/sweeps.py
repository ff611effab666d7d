"""The sweeps among the runs of a folder: the states of their points, and the missing points."""

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

PREFIX = "sweep-"  # of the id of every sweep; the name of a run never begins so
NOT_BEGUN = "not begun"  # the state of points without a run, as users see it
_LAST = re.compile(rf"(?:{PREFIX})?last(?:~([0-9]{{1,6}}))?")
_OWN, _OF_ANOTHER_USER, _FROM_ARCHIVE = range(3)  # origins of a run, the most trusted one first


@dataclass(frozen=True)
class RecordedSweep:
    """A sweep as its runs have recorded it."""

    sweep: Sweep
    root: Path
    entries: list[RunEntry]  # of its runs, oldest first
    source: Path  # the run from whose record `sweep` was read
    # All its readable runs come from an archive: its command is never run.
    is_imported: bool = False

    @property
    def runs(self) -> list[Path]:
        return [self.root / entry.run for entry in self.entries]

    @property
    def unfinished(self) -> list[RunEntry]:
        """Its runs that are running or queued."""
        return [entry for entry in self.entries if entry.is_running]

    @property
    def client(self) -> Identity | None:
        """The process that starts one point after another; None if it cannot be seen from here."""
        client = self.sweep.front
        if self.is_imported or not client or presence.presence(client) != "alive":
            return None
        return client

    @property
    def counts(self) -> Counter[str]:
        """The number of points in each state.

        A point with a run that succeeded has succeeded. Any other has the state of its newest run.
        """
        states: dict[str, str] = {}
        for entry in self.entries:
            point = repr(sorted(entry.point.items()))
            if states.get(point) != RunState.SUCCEEDED:
                states[point] = entry.state
        counts = Counter(states.values())
        point_count = prod(len(values) for values in self.sweep.values.values())
        not_begun = point_count - len(states)
        if not_begun > 0:
            counts[NOT_BEGUN] += not_begun
        return counts


def find(reference: str, root: Path) -> RecordedSweep:
    """Return the sweep with an id, with the start of one, or `last`, or `last~1` (the previous).

    Raise UsageError if there is no such sweep, if several fit, or if its runs cannot be read.
    """
    entries = list_points(root)
    ids = sweeps_among(reversed(entries))
    matches = _match(reference, ids)
    if len(matches) != 1:
        problem = f"is not a sweep in {show(root)}"
        if matches:
            problem = f"could be {len(matches)} sweeps; add characters"
        raise UsageError(
            f"{show(reference, 40)} {problem}{did_you_mean(reference, ids)}; "
            f"list all sweeps: {hint(root, 'sweep')}"
        )
    sweep = _read_sweep([entry for entry in entries if entry.sweep == matches[0]], root)
    if sweep is None:
        raise UsageError(
            f"the runs of {show(reference, 40)} can no longer be read; start the sweep again"
        )
    return sweep


def _match(reference: str, newest_first: Sequence[str]) -> Sequence[str]:
    """Return the ids of the sweeps that a reference may mean."""
    if last := _LAST.fullmatch(reference):
        position = int(last[1] or 0)
        return newest_first[position : position + 1]
    start = reference.removeprefix(PREFIX)
    if len(start) < 3:
        return []
    return [name for name in newest_first if name.removeprefix(PREFIX).startswith(start)]


def newest(root: Path, limit: int) -> tuple[list[RecordedSweep], int]:
    """Return the newest sweeps of a folder, newest first, and how many there are in all.

    The sweep with the newest run is the newest one.
    """
    entries = list_points(root)
    ids = sweeps_among(reversed(entries))
    sweeps = []
    for sweep_id in ids[:limit]:
        sweep = _read_sweep([entry for entry in entries if entry.sweep == sweep_id], root)
        if sweep is not None:
            sweeps.append(sweep)
    return sweeps, len(ids)


def describe_counts(counts: Counter[str]) -> str:
    """Return how many points are in which state: `2 of 5 done, 1 running, 2 queued`."""
    parts = [f"{counts[RunState.SUCCEEDED]} of {plural(counts.total(), 'point')} done"]
    for state, count in counts.items():
        if state != RunState.SUCCEEDED:
            parts.append(f"{count} {state}")
    return ", ".join(parts)


def list_points(root: Path) -> list[RunEntry]:
    """Return the runs that are points of a sweep, oldest first."""
    index = Index(root)
    entries = [index.entry(run_dir.name) for run_dir in reversed(store.list_runs(root))]
    index.save()
    return [entry for entry in entries if entry.sweep]


@contextlib.contextmanager
def in_start_folder(recorded: RecordedSweep) -> Iterator[None]:
    """Change to the folder where a sweep was started, for the time of a `with` block.

    UsageError if the sweep cannot be started again from its record.
    """
    sweep = recorded.sweep
    if recorded.is_imported:
        raise UsageError(
            f"{sweep.id} comes from an archive, and commands from archives are never run; "
            "start your own sweep"
        )
    if _origin_of(recorded.source) != _OWN:
        raise UsageError(
            f"{sweep.id}: another user may have written {show(str(recorded.source))}, "
            "so its command is not run; start your own sweep"
        )
    if any(GONE in word for word in sweep.argv):
        raise UsageError(
            f"{sweep.id} cannot be resumed: its command line contains a secret, "
            "which tuilab does not store; start it again"
        )
    try:
        with contextlib.chdir(sweep.folder or os.curdir):
            yield
    except (FileNotFoundError, NotADirectoryError, PermissionError) as problem:
        raise UsageError(
            f"{sweep.id} was started in {show(sweep.folder)}: {problem.strerror}; start it again"
        ) from problem


def missing_points(recorded: RecordedSweep, points: Sequence[Sweep]) -> list[int]:
    """Return the positions of the points that have no result and are neither running nor queued.

    `points` are those that the sweep would have if it were started now. Raise UsageError if their
    values are not those of the recorded sweep.
    """
    if points[0].values != recorded.sweep.values:
        raise UsageError(
            f"{recorded.sweep.id} would use other values now, because its scenario has changed; "
            "start a new sweep"
        )
    settled = []
    for entry in recorded.entries:
        if entry.state == RunState.SUCCEEDED or entry.is_running:
            sweep = _sweep_of(recorded.root / entry.run)
            if sweep is not None:  # None if the record was damaged after the index had read it
                settled.append(sweep.point)
    return [position for position, point in enumerate(points) if point.point not in settled]


def _read_sweep(entries: list[RunEntry], root: Path) -> RecordedSweep | None:
    """Return the sweep of these runs, from the most trusted record; None if none can be read."""
    newest_first = entries[::-1]
    for entry in sorted(newest_first, key=lambda entry: _origin_of(root / entry.run)):
        run_dir = root / entry.run
        sweep = _sweep_of(run_dir)
        if sweep:
            return RecordedSweep(sweep, root, entries, run_dir, is_imported(run_dir))
    return None


def _origin_of(run_dir: Path) -> int:
    """Return _OWN, _OF_ANOTHER_USER if another user may have written a run, or _FROM_ARCHIVE."""
    if is_imported(run_dir):
        return _FROM_ARCHIVE
    try:
        is_own = can_only_be_ours(os.lstat(run_dir))
    except OSError:
        return _OF_ANOTHER_USER
    return _OWN if is_own else _OF_ANOTHER_USER


def _sweep_of(run_dir: Path) -> Sweep | None:
    """Return the sweep that the record of a run names; None if it names none or is unreadable."""
    try:
        summary, _ = read_entry.read_summary(run_dir)
    except (OSError, TuilabError):
        return None
    return sweep_of_record(summary.run)


def sweep_of_record(run: RunStarted | None) -> Sweep | None:
    """Return the sweep that a run is a point of.

    None if the record claims more points than a sweep can have.
    """
    if run is None or not run.sweep:
        return None
    point_count = prod(len(values) for values in run.sweep.values.values())
    if point_count > MOST:
        return None
    return run.sweep
