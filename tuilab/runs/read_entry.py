"""Reads the entry of a run from its journal.

Only the short streams are read: those of the supervisor and the judge. The verdicts of a command name no GPU, so for a command
the beginning of two more streams is read. `index` keeps the entries.
"""

import os
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

from tuilab.errors import TuilabError
from tuilab.record.events import GpuFound, GpuHeld, is_newer, newer_words
from tuilab.record.folding import saved_summary
from tuilab.record.folding.fold import fold_stream
from tuilab.record.gpus.own_gpus import name_of_gpu
from tuilab.record.journal.reader import Reader
from tuilab.record.live_run import presence
from tuilab.record.origin.imported import is_imported
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.runs.entry import RunEntry, from_name, is_newborn
from tuilab.storage import filetree

_STREAM_LIMIT = 64 * 1024 * 1024  # of what a supervisor or a judge writes about one run
_PORTION = 1024 * 1024
_HEAD = (
    256 * 1024
)  # bytes of a stream in which the GPUs of a command are searched: it holds memory from its first step on
_CLAIMS = 100  # of one run that are kept

PathLike = str | os.PathLike[str]


def read_entry(run_dir: PathLike) -> RunEntry:
    """Return the entry of a run as it is now; if it cannot be read, the entry contains the reason."""
    try:
        summary, state = read_summary(run_dir)
    except OSError as problem:
        return _unreadable(run_dir, problem.strerror or str(problem))
    except TuilabError as problem:
        return _unreadable(run_dir, str(problem))
    return entry_of(run_dir, summary, state)


def read_summary(run_dir: PathLike) -> tuple[RunSummary, str]:
    """Return the summary of the short streams of a run, and its state; OSError or TuilabError if they cannot be read."""
    summary = _read_short_streams(run_dir)
    if summary.is_over or not _is_abandoned(summary, run_dir):
        return summary, summary.state
    summary = _read_short_streams(run_dir)  # it may have written its end before it exited
    return summary, summary.state if summary.is_over else RunState.LOST


def _unreadable(run_dir: PathLike, reason: str) -> RunEntry:
    return from_name(os.path.basename(run_dir))._replace(state=RunState.UNREADABLE, reason=reason)


def _read_short_streams(run_dir: PathLike) -> RunSummary:
    summary = RunSummary()
    for stream in ("supervisor", "judge"):
        try:
            reader = Reader(f"{os.fspath(run_dir)}/journal/{stream}.jsonl")
        except FileNotFoundError:
            continue
        try:
            for _ in range(_STREAM_LIMIT // _PORTION):
                if not (items := reader.read(_PORTION)):
                    break
                if newer := next(filter(is_newer, items), None):
                    raise TuilabError(newer_words(newer))
                fold_stream(summary, stream, items)
                if reader.bytes_read == reader.bytes_seen:
                    break
        finally:
            reader.close()
    if (
        summary.is_over and summary.run and summary.run.command and not summary.claims
    ):  # a running run is read again and again
        _add_gpus(summary, run_dir)
    return summary


def _add_gpus(summary: RunSummary, run_dir: PathLike) -> None:
    """Add the GPUs of the machine to a summary, and on which of them a command held memory."""
    for stream in ("sampler", "worker-0"):
        with (
            suppress(OSError, TuilabError),
            closing(Reader(f"{os.fspath(run_dir)}/journal/{stream}.jsonl")) as reader,
        ):
            fold_stream(
                summary,
                stream,
                [item for item in reader.read(_HEAD) if isinstance(item, GpuFound | GpuHeld)],
            )


def _is_abandoned(summary: RunSummary, run_dir: PathLike) -> bool:
    """Return whether no process is left that could end a run."""
    if summary.run is not None:
        return presence(Path(run_dir), summary) == "dead"
    return not is_newborn(os.path.basename(run_dir))


def entry_of(run_dir: PathLike, summary: RunSummary, state: str) -> RunEntry:
    """Return the entry of a run that has been read."""
    name, run = os.path.basename(run_dir), summary.run
    every = list(summary.claims.values())[:_CLAIMS]
    claims = [(claim.text[:300], claim.verdict.verdict if claim.verdict else "") for claim in every]
    bytes_total = filetree.size(
        run_dir, but=saved_summary.FILE
    )  # this file comes and goes when a run is opened
    if run is None:
        reason = summary.reason[:300]
        return from_name(name)._replace(
            state=state, reason=reason, claims=claims, bytes_total=bytes_total
        )
    verdicts = [claim.verdict for claim in every]
    claim_gpus = [verdict.gpu[:300] if verdict else "" for verdict in verdicts]
    gpu_names = {
        verdict.gpu[:300]: verdict.gpu_name[:300] for verdict in verdicts if verdict and verdict.gpu
    }
    if not gpu_names:
        gpu_names = {
            uuid[:300]: name_of_gpu(uuid, summary)[:300]
            for uuid in islice(summary.gpus_held, _CLAIMS)
        }
    return RunEntry(
        run=name,
        scenario=run.scenario,
        topic=run.topic,
        title=run.title[:300],
        state=state,
        reason=summary.reason[:300],
        changed={name: run.params[name] for name in run.changed if name in run.params},
        claims=claims,
        elapsed_s=summary.elapsed_s if summary.is_over else None,
        bytes_total=bytes_total,
        claim_keys=[claim.key for claim in every],
        source_sha256=run.source_sha256,
        claim_gpus=claim_gpus if any(claim_gpus) else [],
        gpu_names=gpu_names,
        quick=run.quick,
        waited_s=0.0 if summary.is_over else (summary.first_t - run.t) / 1e9,
        sweep=run.sweep.id if run.sweep else "",
        host="" if is_imported(run_dir) else run.supervisor.host,
        point=run.sweep.point if run.sweep else {},
    )
