"""Read the entry of a run from its journal; `index` keeps the entries.

Only the short streams are read: those of the supervisor and the judge. The verdicts of a command
name no GPU, so for a command the beginning of two more streams is read.
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
from tuilab.record.journal.lines import Item
from tuilab.record.journal.reader import Reader
from tuilab.record.live_run import presence
from tuilab.record.origin.imported import is_imported
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.runs.entry import RunEntry, from_name, is_newborn
from tuilab.storage import filetree

_STREAM_LIMIT = 64 * 1024 * 1024  # bytes of a short stream that are read
_PORTION = 1024 * 1024
# Bytes of a stream in which the GPUs of a command are searched. A command holds memory on them from
# its first step on.
_HEAD = 256 * 1024
_MAX_CLAIMS = 100  # of one run, and as many GPUs
_MAX_TEXT = 300  # characters

PathLike = str | os.PathLike[str]


def read_entry(run_dir: PathLike) -> RunEntry:
    """Return the entry of a run as it is now, or one with the reason if it cannot be read."""
    try:
        summary, state = read_summary(run_dir)
    except OSError as problem:
        return _unreadable(run_dir, problem.strerror or str(problem))
    except TuilabError as problem:
        return _unreadable(run_dir, str(problem))
    return entry_of(run_dir, summary, state)


def read_summary(run_dir: PathLike) -> tuple[RunSummary, str]:
    """Return the summary of the short streams of a run, and its state.

    OSError or TuilabError if the streams cannot be read.
    """
    summary = _read_short_streams(run_dir)
    if summary.is_over or not _is_abandoned(summary, run_dir):
        return summary, summary.state
    summary = _read_short_streams(run_dir)  # it may have written its end before it exited
    if summary.is_over:
        return summary, summary.state
    return summary, RunState.LOST


def _unreadable(run_dir: PathLike, reason: str) -> RunEntry:
    return from_name(os.path.basename(run_dir))._replace(state=RunState.UNREADABLE, reason=reason)


def _read_short_streams(run_dir: PathLike) -> RunSummary:
    """Return the summary of the streams of the supervisor and the judge.

    A missing stream is skipped. For a finished command, the GPUs that it used are added.
    """
    summary = RunSummary()
    for stream in ("supervisor", "judge"):
        try:
            reader = Reader(_path_of(run_dir, stream))
        except FileNotFoundError:
            continue
        with closing(reader):
            _fold_whole(summary, stream, reader)
    # Not while the command is running, because it is read again and again then.
    if summary.is_over and summary.run and summary.run.command and not summary.claims:
        _add_gpus(summary, run_dir)
    return summary


def _path_of(run_dir: PathLike, stream: str) -> str:
    return f"{os.fspath(run_dir)}/journal/{stream}.jsonl"


def _fold_whole(summary: RunSummary, stream: str, reader: Reader) -> None:
    """Fold a stream into a summary, up to `_STREAM_LIMIT` bytes.

    TuilabError if the run has a newer format; the summary may then have earlier records of it.
    """
    for _ in range(_STREAM_LIMIT // _PORTION):
        items = reader.read(_PORTION)
        if not items:
            return
        for item in items:
            if is_newer(item):
                raise TuilabError(newer_words(item))
        fold_stream(summary, stream, items)
        if reader.bytes_read == reader.bytes_seen:
            return


def _add_gpus(summary: RunSummary, run_dir: PathLike) -> None:
    """Add the GPUs of the machine to a summary, and on which of them a command held memory.

    A stream that cannot be read adds nothing.
    """
    for stream in ("sampler", "worker-0"):
        with suppress(OSError, TuilabError), closing(Reader(_path_of(run_dir, stream))) as reader:
            head = reader.read(_HEAD)
            gpu_records: list[Item] = []
            gpu_records += [item for item in head if isinstance(item, GpuFound | GpuHeld)]
            fold_stream(summary, stream, gpu_records)


def _is_abandoned(summary: RunSummary, run_dir: PathLike) -> bool:
    """Return whether no process is left that could end a run."""
    if summary.run is not None:
        return presence(Path(run_dir), summary) == "dead"
    return not is_newborn(os.path.basename(run_dir))


def entry_of(run_dir: PathLike, summary: RunSummary, state: str) -> RunEntry:
    """Return the entry of a run that has been read, with long texts cut.

    At most `_MAX_CLAIMS` claims are kept. If the first record is lost, the name of the folder gives
    the scenario.
    """
    name = os.path.basename(run_dir)
    run = summary.run
    recorded = list(summary.claims.values())[:_MAX_CLAIMS]
    claims = []
    claim_gpus = []
    gpu_names = {}
    for claim in recorded:
        text = claim.text[:_MAX_TEXT]
        verdict = claim.verdict
        if verdict is None:
            claims.append((text, ""))
            claim_gpus.append("")
            continue
        claims.append((text, verdict.verdict))
        gpu = verdict.gpu[:_MAX_TEXT]
        claim_gpus.append(gpu)
        if gpu:
            gpu_names[gpu] = verdict.gpu_name[:_MAX_TEXT]
    if not any(claim_gpus):
        claim_gpus = []
    # The saved summary is left out: it comes and goes when a run is opened.
    bytes_total = filetree.size(run_dir, but=saved_summary.FILE)
    reason = summary.reason[:_MAX_TEXT]
    if run is None:
        entry = from_name(name)
        return entry._replace(state=state, reason=reason, claims=claims, bytes_total=bytes_total)
    if not gpu_names:
        for uuid in islice(summary.gpus_held, _MAX_CLAIMS):
            gpu_names[uuid[:_MAX_TEXT]] = name_of_gpu(uuid, summary)[:_MAX_TEXT]
    elapsed_s = None
    waited_s = 0.0
    if summary.is_over:
        elapsed_s = summary.elapsed_s
    else:
        waited_s = (summary.first_t - run.t) / 1e9
    changed = {name: run.params[name] for name in run.changed if name in run.params}
    return RunEntry(
        run=name,
        scenario=run.scenario,
        topic=run.topic,
        title=run.title[:_MAX_TEXT],
        state=state,
        reason=reason,
        changed=changed,
        claims=claims,
        elapsed_s=elapsed_s,
        bytes_total=bytes_total,
        claim_keys=[claim.key for claim in recorded],
        source_sha256=run.source_sha256,
        claim_gpus=claim_gpus,
        gpu_names=gpu_names,
        quick=run.quick,
        waited_s=waited_s,
        sweep=run.sweep.id if run.sweep else "",
        host="" if is_imported(run_dir) else run.supervisor.host,
        point=run.sweep.point if run.sweep else {},
    )
