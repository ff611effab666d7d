"""The records of a supervisor about the start and the end of workers, and about the streams."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tuilab.engine.messages import ArmOrder
from tuilab.engine.spawn import Child, worker_environment
from tuilab.record import events, held_back_records, presence
from tuilab.record.journal.lines import last_number
from tuilab.scrub import environment_for_record, words_for_record
from tuilab.storage.files import open_regular

FAULT_LIMIT = 4096  # bytes
_STREAMS_PER_RECORD = 500  # so that a record does not get too long


def started(
    child: Child, arm: ArmOrder | None, run: str, *, was_warm: bool
) -> events.WorkerStarted:
    """Return the record of a new worker, with the variables that only its arm has."""
    record = events.WorkerStarted(
        writer=child.writer,
        pid=child.pid,
        start=_start_time(child.pid),
        repeat=child.repeat,
        was_warm=was_warm,
    )
    if arm:
        record.arm, record.prefix = arm.arm, words_for_record(arm.prefix)
        record.env = environment_for_record(arm.env, worker_environment(run))
    return record


def _start_time(pid: int) -> int:
    """Return the start time of a process; 0 if unknown, for example because it has ended."""
    with contextlib.suppress(OSError):
        return presence.start_time(pid) or 0
    return 0


def exited(child: Child, run_dir: Path) -> events.WorkerExited:
    """Return the record of a worker that has ended.

    This also removes the files in which the worker counted unwritten records, and empty logs of
    faults.
    """
    lost = held_back_records.take_count(run_dir, child.writer)
    if child.result:
        lost += max(child.result.lost, 0)
    return events.WorkerExited(
        writer=child.writer,
        code=child.code,
        signal=child.signal,
        reason=child.how_it_ended(),
        fault=_take_faults(run_dir, child.writer),
        lost=lost,
        rss_peak_bytes=child.rss_peak_bytes,
    )


def _take_faults(run_dir: Path, writer: str) -> str:
    """Return the stack of a crashed worker or of its first rank that crashed; empty without any.

    Empty logs are removed.
    """
    logs = [run_dir / f"fault-{writer}.log"]
    with contextlib.suppress(OSError):  # the limit of open files may be reached
        rank_logs = run_dir.glob(f"fault-{writer}-rank-*.log")
        logs += sorted(rank_logs, key=lambda log: (len(log.name), log.name))
    first_fault = ""
    for log in logs:
        fault = _take_fault(log)  # of every log, because it removes an empty one
        first_fault = first_fault or fault
    return first_fault


def _take_fault(log: Path) -> str:
    """Return what the fault handler wrote into a log; if the log is empty, remove it.

    An empty string also if the log cannot be read.
    """
    with contextlib.suppress(OSError), open(open_regular(log), "rb") as file:
        text = file.read(FAULT_LIMIT).decode(errors="replace")
        if text:
            return text
        log.unlink()
    return ""


def stream_counts(journal: Path) -> Iterator[events.StreamsCounted]:
    """Yield the number of records in each stream, except that of the supervisor, which continues.

    The counts are taken when every writer has ended, also one that was killed. A stream that is cut
    later differs from its count.
    """
    counts = {}
    with contextlib.suppress(OSError):
        for path in sorted(journal.glob("*.jsonl")):
            with contextlib.suppress(OSError):
                counts[path.stem] = last_number(path) + 1
    names = [name for name in counts if name != "supervisor"]
    for first in range(0, len(names), _STREAMS_PER_RECORD):
        portion = names[first : first + _STREAMS_PER_RECORD]
        yield events.StreamsCounted(records={name: counts[name] for name in portion})
