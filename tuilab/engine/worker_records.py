"""The records that a supervisor writes of a worker, how it started and how it ended, and of the streams at the end."""

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
_TOGETHER = 500  # streams that one record counts


def started(
    child: Child, arm: ArmOrder | None, run: str, *, was_warm: bool
) -> events.WorkerStarted:
    """Return the record of a worker that started; of an arm's environment what differs from that of other workers."""
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
    """Return when a worker started; 0, which no process has, where that is not known: it may have ended already."""
    with contextlib.suppress(OSError):
        return presence.start_time(pid) or 0
    return 0


def exited(child: Child, run_dir: Path) -> events.WorkerExited:
    told = max(child.farewell.lost, 0) if child.farewell else 0
    return events.WorkerExited(
        writer=child.writer,
        code=child.code,
        signal=child.signal,
        reason=child.how_it_ended(),
        fault=_take_faults(run_dir, child.writer),
        lost=told + held_back_records.take_count(run_dir, child.writer),
        rss_peak_bytes=child.rss_peak_bytes,
    )


def _take_faults(run_dir: Path, writer: str) -> str:
    """Return what a worker had to say when it crashed, or else the rank of least number that had."""
    logs = [run_dir / f"fault-{writer}.log"]
    with contextlib.suppress(OSError):  # it may open nothing any more, not even the folder
        logs += sorted(
            run_dir.glob(f"fault-{writer}-rank-*.log"), key=lambda log: (len(log.name), log.name)
        )
    return next(iter([*filter(None, map(_take_fault, logs))]), "")


def _take_fault(log: Path) -> str:
    """Return what the fault handler wrote when the worker crashed; remove the file when it wrote nothing."""
    with contextlib.suppress(OSError), open(open_regular(log), "rb") as file:
        if text := file.read(FAULT_LIMIT).decode(errors="replace"):
            return text
        log.unlink()
    return ""


def stream_counts(journal: Path) -> Iterator[events.StreamsCounted]:
    """Yield how many records each stream holds; the supervisor's is left out, because it continues.

    The counts are taken when every process that wrote a stream has ended. A stream that is cut later differs from its count;
    one that a killed worker or sampler left does not.
    """
    counts = {}
    with contextlib.suppress(OSError):
        for path in sorted(journal.glob("*.jsonl")):
            with contextlib.suppress(OSError):
                counts[path.stem] = last_number(path) + 1
    names = [name for name in counts if name != "supervisor"]
    for at in range(0, len(names), _TOGETHER):
        yield events.StreamsCounted(
            records={name: counts[name] for name in names[at : at + _TOGETHER]}
        )
