"""When each block of a race ran, as Chrome and Perfetto show it: a process for each worker, a lane for each arm."""

from collections.abc import Sequence
from typing import Any

from tuilab.record.blocks import in_order
from tuilab.record.parts import Block
from tuilab.reports.subject import Subject
from tuilab.text import show


def trace(subjects: Sequence[Subject]) -> dict[str, Any]:
    """Return the schedule in the Trace Event Format; times are in microseconds since the first record of each run."""
    events: list[dict[str, Any]] = []
    for subject in subjects:
        _put_run(events, subject, len({event["pid"] for event in events}) + 1)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _put_run(events: list[dict[str, Any]], subject: Subject, first_pid: int) -> None:
    summary = subject.summary
    lanes = in_order(summary)
    lanes |= {(writer, f"{arm} ({control})"): blocks for (writer, arm, control), blocks in summary.controls.items()}
    pids = {writer: first_pid + at for at, writer in enumerate(dict.fromkeys(writer for writer, _ in lanes))}
    for writer, pid in pids.items():
        events.append(_name("process_name", pid, 0, f"{subject.name} {subject.id} {show(writer, 60)}"))
    for tid, ((writer, arm), blocks) in enumerate(lanes.items(), 1):
        events.append(_name("thread_name", pids[writer], tid, show(arm, 100)))
        events += [_span(block, arm, pids[writer], tid, summary.first_t) for block in blocks]
    for stage in summary.stages:
        events.append({"ph": "i", "s": "g", "name": show(stage.name, 100), "pid": first_pid, "tid": 0,
                       "ts": (stage.t - summary.first_t) / 1e3})  # fmt: skip


def _span(block: Block, arm: str, pid: int, tid: int, first_t: int) -> dict[str, Any]:
    told = {"round": block.round, "step_s": block.step_s, "warm-up": block.is_warmup, "disturbed": block.is_disturbed,
            "rerun": block.is_rerun}  # fmt: skip
    start_us = (block.t - block.wall_ns - first_t) / 1e3
    return {"ph": "X", "name": show(arm, 100), "cat": "block", "pid": pid, "tid": tid, "ts": start_us,
            "dur": block.wall_ns / 1e3, "args": told}  # fmt: skip


def _name(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
