"""A line about each run: what its folder's name tells at once, and what its journal tells once somebody looks.

Only the short streams of a journal are read: the supervisor's and the judge's. What was learnt is remembered in `ledger_cache`.
"""

import time
from pathlib import Path

import msgspec

from tuilab import filetree
from tuilab.errors import TuilabError
from tuilab.record.events import Scalar, is_newer, newer_words
from tuilab.record.folding import folded
from tuilab.record.folding.fold import fold
from tuilab.record.journal.reader import Reader
from tuilab.record.live_run import presence
from tuilab.record.origin.imported import is_imported
from tuilab.record.presence import host_name
from tuilab.record.states import FINAL_STATES, RUNNING_STATES, RunState
from tuilab.record.summary import RunSummary
from tuilab.runs.run_name import RunName
from tuilab.words import gpu_words

_STREAM_LIMIT = 64 * 1024 * 1024  # of what a supervisor or a judge writes about one run
_PORTION = 1024 * 1024
_CLAIMS = 100  # that are kept of one run
WAITS = "waits"  # in the place of how long a run took, while it is queued
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
    source_sha256: str = ""
    claim_gpus: list[str] = []  # on which the claims were measured, in their order: torch's UUIDs
    gpu_names: dict[str, str] = {}  # of those
    quick: bool = False
    waited_s: float = 0.0  # in the queue, before it began; of a run that goes on
    sweep: str = ""  # that it is a point of
    host: str = ""  # the box that it ran on; nothing for a run out of an archive, which may say what it likes

    @property
    def gpus(self) -> list[str]:
        """The GPUs on which its claims were measured, in words."""
        return [gpu_words(name, uuid) for uuid, name in self.gpu_names.items()]

    @property
    def is_read(self) -> bool:
        return bool(self.state)

    @property
    def is_running(self) -> bool:
        return self.state in RUNNING_STATES

    @property
    def is_over(self) -> bool:
        """Whether it came to an end that is in its record, so that it stays as it is."""
        return self.state in FINAL_STATES

    @property
    def is_of_this_box(self) -> bool:
        return self.host == host_name()

    @property
    def is_lost(self) -> bool:
        return self.state == RunState.LOST

    @property
    def started_s(self) -> float | None:
        """When it started, in seconds since 1970; None for a folder with another kind of name."""
        return RunName(self.run).started_s

    @property
    def is_waiting(self) -> bool:
        return self.state == RunState.QUEUED

    def elapsed_at(self, now_s: float) -> float | None:
        """Return how many seconds it took, or since it began where it goes on; None while it waits."""
        if self.is_running and self.started_s is not None:
            return None if self.is_waiting else max(now_s - self.started_s - self.waited_s, 0.0)
        return self.elapsed_s

    @property
    def name(self) -> str:
        return f"{self.topic}/{self.scenario}" if self.topic else self.scenario


def from_name(run: str) -> Entry:
    """Return what the name of a run's folder tells: its time and its scenario."""
    return Entry(run, RunName(run).scenario or run)


def read(run_dir: Path) -> Entry:
    """Return a line about a run as it is now; of one that cannot be read, why."""
    try:
        summary, state = look(run_dir)
    except OSError as problem:
        return _unreadable(run_dir, problem.strerror or str(problem))
    except TuilabError as problem:
        return _unreadable(run_dir, str(problem))
    return entry_of(run_dir, summary, state)


def look(run_dir: Path) -> tuple[RunSummary, str]:
    """Return what the short streams of a run tell, and its state; OSError or TuilabError when they cannot be read."""
    summary = _read_short_streams(run_dir)
    if summary.is_over or not _is_abandoned(summary, run_dir):
        return summary, summary.state
    summary = _read_short_streams(run_dir)  # it may have written its last words before it went
    return summary, summary.state if summary.is_over else RunState.LOST


def _unreadable(run_dir: Path, reason: str) -> Entry:
    return msgspec.structs.replace(from_name(run_dir.name), state=RunState.UNREADABLE, reason=reason)


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
                if newer := next(filter(is_newer, items), None):
                    raise TuilabError(newer_words(newer))
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
    return _is_young(run, time.time(), NEWBORN_S)


def may_change(entry: Entry, now_s: float) -> bool:
    """Say whether a run may be otherwise when it is looked at again; one that looks lost may have written nothing yet."""
    return entry.is_running or (entry.is_read and not entry.is_over and _is_young(entry.run, now_s, 2 * NEWBORN_S))


def _is_young(run: str, now_s: float, age_s: float) -> bool:
    started = RunName(run).started_s
    return started is not None and abs(now_s - started) <= age_s


def entry_of(run_dir: Path, summary: RunSummary, state: str) -> Entry:
    """Return a line about a run that has been read."""
    run = summary.run
    guessed = from_name(run_dir.name)
    claims = [(claim.text[:300], claim.verdict.verdict if claim.verdict else "") for claim in summary.claims.values()]
    reached = [claim.verdict for claim in summary.claims.values()][:_CLAIMS]
    return Entry(
        run=run_dir.name,
        scenario=run.scenario if run else guessed.scenario,
        topic=run.topic if run else "",
        title=run.title[:300] if run else "",
        state=state,
        reason=summary.reason[:300],
        changed={name: run.params[name] for name in run.changed if name in run.params} if run else {},
        claims=claims[:_CLAIMS],
        elapsed_s=summary.elapsed_s if summary.is_over else None,
        bytes_total=filetree.size(run_dir, but=folded.FILE),  # which comes and goes when a run is opened
        claim_keys=[claim.key for claim in summary.claims.values()][:_CLAIMS],
        source_sha256=run.source_sha256 if run else "",
        claim_gpus=[verdict.gpu[:300] if verdict else "" for verdict in reached] if any(v and v.gpu for v in reached) else [],
        gpu_names={verdict.gpu[:300]: verdict.gpu_name[:300] for verdict in reached if verdict and verdict.gpu},
        quick=run.quick if run else False,
        waited_s=(summary.first_t - run.t) / 1e9 if run and not summary.is_over else 0.0,
        sweep=run.sweep.id if run and run.sweep else "",
        host=run.supervisor.host if run and not is_imported(run_dir) else "",
    )
