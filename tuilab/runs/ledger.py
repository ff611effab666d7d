"""A line about each run: what its folder's name tells at once, and what its journal tells once somebody looks.

Only the short streams of a journal are read: the supervisor's and the judge's. Runs that are over are remembered in a file
beside them that may be deleted at any time.
"""

import os
import time
from calendar import timegm
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from tuilab import filetree
from tuilab.errors import TuilabError
from tuilab.files import read_regular
from tuilab.record.events import Scalar, is_newer
from tuilab.record.journal import Reader
from tuilab.record.live_run import presence
from tuilab.record.summary import RunSummary, fold
from tuilab.runs.store import list_runs

RUNNING = frozenset({"starting", "running", "stopping"})
_FILE = ".ledger.json"
_FILE_LIMIT = 64 * 1024 * 1024
_STREAM_LIMIT = 64 * 1024 * 1024  # of what a supervisor or a judge writes about one run
_PORTION = 1024 * 1024
_CLAIMS = 100  # that are kept of one run
_WORTH_KEEPING = 50  # runs
_LOOKED_AT = 2000  # runs of a folder, the newest
NEWBORN_S = 10.0  # in which a folder may lack its first record


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a list of runs shows of one; `state` is empty while nobody has looked."""

    run: str  # the name of its folder
    scenario: str
    topic: str = ""
    title: str = ""
    state: str = ""
    reason: str = ""
    changed: dict[str, Scalar] = {}  # the params that differ from the scenario's defaults
    claims: list[tuple[str, str]] = []  # text and verdict, which is empty while there is none
    elapsed_s: float | None = None
    bytes_total: int | None = None
    claim_keys: list[str] = []  # of the claims, in their order; empty words where they have none

    @property
    def is_read(self) -> bool:
        return bool(self.state)

    @property
    def is_running(self) -> bool:
        return self.state in RUNNING

    @property
    def started_s(self) -> float | None:
        """When it started, in seconds since 1970; None for a folder with another kind of name."""
        return started_s(self.run)

    @property
    def name(self) -> str:
        return f"{self.topic}/{self.scenario}" if self.topic else self.scenario


def from_name(run: str) -> Entry:
    """Return what the name of a run's folder tells: its time and its scenario."""
    return Entry(run, run.partition("-")[2].rpartition("-")[0] or run)


def started_s(run: str) -> float | None:
    """Return the time in the name of a run's folder."""
    try:
        return timegm(time.strptime(run[:15], "%Y%m%dT%H%M%S")) + int(run[15:18]) / 1000
    except ValueError:
        return None


def read(run_dir: Path) -> Entry:
    """Return a line about a run as it is now; of one that cannot be read, why."""
    try:
        summary, state = look(run_dir)
    except OSError as problem:
        return msgspec.structs.replace(from_name(run_dir.name), state="unreadable", reason=problem.strerror or str(problem))
    except TuilabError as problem:
        return msgspec.structs.replace(from_name(run_dir.name), state="unreadable", reason=str(problem))
    return entry_of(run_dir, summary, state)


def look(run_dir: Path) -> tuple[RunSummary, str]:
    """Return what the short streams of a run tell, and its state; OSError or TuilabError when they cannot be read."""
    summary = _read_short_streams(run_dir)
    if summary.is_over or not _is_abandoned(summary, run_dir):
        return summary, summary.state
    summary = _read_short_streams(run_dir)  # it may have written its last words before it went
    return summary, summary.state if summary.is_over else "lost"


def load(root: Path) -> dict[str, Entry]:
    """Return what is remembered of the runs in a folder, by name; of a damaged file nothing."""
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        entries = msgspec.json.decode(read_regular(root / _FILE, _FILE_LIMIT), type=list[Entry])
        return {entry.run: entry for entry in entries}
    return {}


def save(root: Path, entries: Iterable[Entry]) -> None:
    """Remember the runs that are over; without room or permission the next reader looks for itself."""
    over = [entry for entry in entries if entry.is_read and not entry.is_running and entry.state not in ("lost", "unreadable")]
    temporary = root / f"{_FILE}.{os.getpid()}"
    with suppress(OSError):
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(msgspec.json.encode(over))
        os.replace(temporary, root / _FILE)


def spokesmen(root: Path) -> dict[str, Path]:
    """Return, by scenario, the run that speaks for it, the newest scenario first.

    It is the newest that succeeded with the scenario's defaults; if there is none, the newest that succeeded; else the newest.
    """
    best: dict[str, tuple[int, Path]] = {}
    memory = Memory(root)
    folders = list_runs(root)
    for folder in folders[:_LOOKED_AT]:
        scenario = from_name(folder.name).scenario
        if best.get(scenario, (-1,))[0] == _AS_IT_IS:
            continue
        rank = _rank(memory.entry(folder))
        if rank > best.get(scenario, (-1,))[0]:
            best[scenario] = rank, folder
    memory.keep(folder.name for folder in folders)
    return {scenario: folder for scenario, (_, folder) in best.items()}


_AS_IT_IS = 2


def _rank(entry: Entry) -> int:
    return (1 if entry.changed else _AS_IT_IS) if entry.state == "succeeded" else 0


class Memory:
    """What is remembered of the runs in a folder, and what is learnt while somebody asks."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known = load(root)
        self._learnt: dict[str, Entry] = {}

    def entry(self, run_dir: Path) -> Entry:
        """Return a line about a run: as remembered where it is over, else as it is now."""
        found = self._known.get(run_dir.name) or self._learnt.get(run_dir.name)
        if found is None:
            found = self._learnt[run_dir.name] = read(run_dir)
        return found

    def look_around(self, runs: Iterable[Path], patience_s: float) -> None:
        """Look at runs that nobody has looked at, for a little while: what is kept makes the next list complete."""
        until = time.monotonic() + patience_s
        for run_dir in runs:
            if time.monotonic() > until:
                return
            self.entry(run_dir)

    def size(self, runs: Iterable[str]) -> tuple[int, bool]:
        """Return the bytes of runs on disk, as far as they were looked at, and whether all were."""
        found = [self._known.get(run) or self._learnt.get(run) for run in runs]
        known = [entry.bytes_total for entry in found if entry is not None and entry.bytes_total is not None]
        return sum(known), len(known) == len(found)

    def keep(self, runs: Iterable[str]) -> None:
        """Remember what was learnt, where that was much, of the runs that are there; little is as quickly learnt again."""
        if len(self._learnt) > _WORTH_KEEPING:
            every = {**self._known, **self._learnt}
            save(self._root, [every[run] for run in runs if run in every])


def _read_short_streams(run_dir: Path) -> RunSummary:
    summary = RunSummary()
    for stream in ("supervisor", "judge"):
        try:
            reader = Reader(run_dir / "journal" / f"{stream}.jsonl")
        except FileNotFoundError:
            continue
        try:
            for _ in range(_STREAM_LIMIT // _PORTION):
                if not (items := reader.read(_PORTION)):
                    break
                if any(is_newer(item) for item in items):
                    raise TuilabError("was recorded by a newer tuilab; upgrade this one")
                fold(((stream, item) for item in items), summary)
        finally:
            reader.close()
    return summary


def _is_abandoned(summary: RunSummary, run_dir: Path) -> bool:
    """Say whether nobody is left who could end a run."""
    if summary.run is not None:
        return presence(run_dir, summary) == "dead"
    return not is_newborn(run_dir.name)


def is_newborn(run: str) -> bool:
    """Say whether a run was made so lately that it may lack its first record."""
    started = started_s(run)
    return started is not None and abs(time.time() - started) <= NEWBORN_S


def entry_of(run_dir: Path, summary: RunSummary, state: str) -> Entry:
    """Return a line about a run that has been read."""
    run = summary.run
    guessed = from_name(run_dir.name)
    claims = [(claim.text[:300], claim.verdict.verdict if claim.verdict else "") for claim in summary.claims.values()]
    return Entry(
        run_dir.name,
        run.scenario if run else guessed.scenario,
        run.topic if run else "",
        run.title[:300] if run else "",
        state,
        summary.reason[:300],
        {name: run.params[name] for name in run.changed if name in run.params} if run else {},
        claims[:_CLAIMS],
        summary.elapsed_s if summary.is_over else None,
        filetree.size(run_dir),
        [claim.key for claim in summary.claims.values()][:_CLAIMS],
    )
