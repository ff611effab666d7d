"""A line about each run: what its folder's name tells at once, and what its journal tells once somebody looks.

Only the short streams of a journal are read: the supervisor's and the judge's; of a command, on which no verdict names a GPU,
the beginning of two others, too. What was learnt is remembered in `ledger_cache`.
"""

import os
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

from tuilab import filetree
from tuilab.errors import TuilabError
from tuilab.record.events import GpuFound, GpuHeld, is_newer, newer_words
from tuilab.record.folding import folded
from tuilab.record.folding.fold import fold_stream
from tuilab.record.gpus.own_gpus import name_of_gpu
from tuilab.record.journal.reader import Reader
from tuilab.record.live_run import presence
from tuilab.record.origin.imported import is_imported
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.runs.listing.entry import Entry, from_name, is_newborn

_STREAM_LIMIT = 64 * 1024 * 1024  # of what a supervisor or a judge writes about one run
_PORTION = 1024 * 1024
_HEAD = 256 * 1024  # of a stream, in which the GPUs of a command are looked for: it holds some from its first step on
_CLAIMS = 100  # that are kept of one run

PathLike = str | os.PathLike[str]


def read(run_dir: PathLike) -> Entry:
    """Return a line about a run as it is now; of one that cannot be read, why."""
    try:
        summary, state = look(run_dir)
    except OSError as problem:
        return _unreadable(run_dir, problem.strerror or str(problem))
    except TuilabError as problem:
        return _unreadable(run_dir, str(problem))
    return entry_of(run_dir, summary, state)


def look(run_dir: PathLike) -> tuple[RunSummary, str]:
    """Return what the short streams of a run tell, and its state; OSError or TuilabError when they cannot be read."""
    summary = _read_short_streams(run_dir)
    if summary.is_over or not _is_abandoned(summary, run_dir):
        return summary, summary.state
    summary = _read_short_streams(run_dir)  # it may have written its last words before it went
    return summary, summary.state if summary.is_over else RunState.LOST


def _unreadable(run_dir: PathLike, reason: str) -> Entry:
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
    if summary.is_over and summary.run and summary.run.command and not summary.claims:  # what goes on is read again and again
        _add_gpus(summary, run_dir)
    return summary


def _add_gpus(summary: RunSummary, run_dir: PathLike) -> None:
    """Have a summary know the GPUs of the box, and on which of them a command holds memory."""
    for stream in ("sampler", "worker-0"):
        with suppress(OSError, TuilabError), closing(Reader(f"{os.fspath(run_dir)}/journal/{stream}.jsonl")) as reader:
            fold_stream(summary, stream, [item for item in reader.read(_HEAD) if isinstance(item, GpuFound | GpuHeld)])


def _is_abandoned(summary: RunSummary, run_dir: PathLike) -> bool:
    """Say whether nobody is left who could end a run."""
    if summary.run is not None:
        return presence(Path(run_dir), summary) == "dead"
    return not is_newborn(os.path.basename(run_dir))


def entry_of(run_dir: PathLike, summary: RunSummary, state: str) -> Entry:
    """Return a line about a run that has been read."""
    run = summary.run
    claims = [(claim.text[:300], claim.verdict.verdict if claim.verdict else "") for claim in summary.claims.values()]
    reached = [claim.verdict for claim in summary.claims.values()][:_CLAIMS]
    return Entry(
        run=os.path.basename(run_dir),
        scenario=run.scenario if run else from_name(os.path.basename(run_dir)).scenario,
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
        gpu_names={verdict.gpu[:300]: verdict.gpu_name[:300] for verdict in reached if verdict and verdict.gpu}
        or {uuid[:300]: name_of_gpu(uuid, summary)[:300] for uuid in islice(summary.gpus_held, _CLAIMS)},
        quick=run.quick if run else False,
        waited_s=(summary.first_t - run.t) / 1e9 if run and not summary.is_over else 0.0,
        sweep=run.sweep.id if run and run.sweep else "",
        host=run.supervisor.host if run and not is_imported(run_dir) else "",
        point=run.sweep.point if run and run.sweep else {},
    )
