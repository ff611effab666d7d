"""What ran when, as Chrome and Perfetto show it: a process for each worker of a race with a lane for each arm, and one for
each picture of spans, whose clock may be its own, so that it begins at 0.
"""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from tuilab.errors import UsageError
from tuilab.record.blocks import in_order, measure_of
from tuilab.record.events import BarsShown, SpanShown
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block
from tuilab.reports.formats.safe_names import names_of, whole
from tuilab.reports.missing_data import damage
from tuilab.reports.reported_run import ReportedRun

_MICROSECONDS = {
    "s": 1e6,
    "ms": 1e3,
    "us": 1.0,
    "µs": 1.0,
    "ns": 1e-3,
}  # of the unit of a span; others are no time
_BEYOND = 1e15  # microseconds, some thirty years: viewers show nothing so long

Event = dict[str, Any]


def render(subjects: Sequence[ReportedRun]) -> str:
    return json.dumps(trace(subjects), indent=1, allow_nan=False) + "\n"


def trace(subjects: Sequence[ReportedRun]) -> dict[str, Any]:
    """Return the schedule in the Trace Event Format; times are in microseconds since the first record of each run."""
    numbers = count(1)  # of processes and lanes: no two have the same one
    named = zip(subjects, names_of(subjects), strict=True)
    events = [event for subject, name in named for event in _run(subject, name, numbers)]
    if not any(event["ph"] == "X" for event in events):
        raise UsageError(
            "a trace shows what ran when, and this run has neither a race nor spans in time; choose .json or .csv"
        )
    damaged = {
        subject.run_dir.name: " ".join(damage(subject)) for subject in subjects if damage(subject)
    }
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"damaged": damaged} if damaged else {},
    }


def _run(subject: ReportedRun, name: str, numbers: Iterator[int]) -> Iterator[Event]:
    title = name if subject.id in name else f"{name} {subject.id}"
    yield from _blocks(subject.summary, title, numbers)
    yield from _spans(subject.summary, title, numbers)
    pid = next(numbers)
    yield _named("process_name", pid, 0, f"{title} DAMAGED" if damage(subject) else title)
    yield from _marks(subject.summary, pid)


def _blocks(summary: RunSummary, title: str, numbers: Iterator[int]) -> Iterator[Event]:
    if measure_of(summary).unit != "s":
        return
    lanes = [(writer, arm, "block", blocks) for (writer, arm), blocks in in_order(summary).items()]
    lanes += [
        (writer, f"{arm} ({which})", "control", blocks)
        for (writer, arm, which), blocks in summary.controls.items()
    ]
    pids = {writer: next(numbers) for writer in dict.fromkeys(writer for writer, *_ in lanes)}
    for writer, pid in pids.items():
        yield _named("process_name", pid, 0, f"{title} {whole(writer)}")
    for writer, name, kind, blocks in lanes:
        tid = next(numbers)
        yield _named("thread_name", pids[writer], tid, whole(name))
        place = {"ph": "X", "name": whole(name), "cat": kind, "pid": pids[writer], "tid": tid}
        yield from (place | _block(block, summary.first_t) for block in blocks)


def _block(block: Block, first_t: int) -> Event:
    """Return when a block began, how long it took, and what is to be known of it."""
    told = {"round": block.round, "step_s": block.step_s, "loops": block.loops, "warm-up": block.is_warmup,
            "disturbed": block.is_disturbed, "rerun": block.is_rerun}  # fmt: skip
    if block.thread_s is not None:
        told["thread_s"] = block.thread_s
    return {
        "ts": (block.t - block.wall_ns - first_t) / 1e3,
        "dur": block.wall_ns / 1e3,
        "args": told,
    }


def _spans(summary: RunSummary, title: str, numbers: Iterator[int]) -> Iterator[Event]:
    """Yield what a scenario showed on lanes; spans in steps or bytes are no time, and have no place here."""
    pictures: dict[str, list[SpanShown]] = {}
    for (arm, _), spans in summary.spans.items():
        pictures.setdefault(arm, []).extend(span for span in spans if _is_in_time(span))
    for arm, spans in pictures.items():
        if spans:
            pid, start = next(numbers), min(_edges(span)[0] for span in spans)
            yield _named("process_name", pid, 0, f"{title} spans {whole(arm)}".strip())
            yield from _lanes(spans, pid, start, numbers)


def _lanes(
    spans: Sequence[SpanShown], pid: int, start: float, numbers: Iterator[int]
) -> Iterator[Event]:
    """Yield spans lane by lane; those that overlap get lanes beside each other, as viewers want them nested or apart."""
    free: dict[tuple[str, int], float] = {}  # until when a lane is taken
    tids: dict[tuple[str, int], int] = {}
    for span in sorted(spans, key=_edges):
        began, ended = _edges(span)
        key = next(
            key for key in ((span.lane, at) for at in count()) if free.get(key, began) <= began
        )
        if key not in tids:
            tids[key] = next(numbers)
            yield _named("thread_name", pid, tids[key], whole(span.lane))
        free[key] = ended
        yield {"ph": "X", "name": whole(span.name or span.lane), "cat": "span", "pid": pid, "tid": tids[key],
               "ts": began - start, "dur": ended - began}  # fmt: skip


def _is_in_time(span: SpanShown) -> bool:
    return span.unit in _MICROSECONDS and all(abs(edge) < _BEYOND for edge in _edges(span))


def _edges(span: SpanShown) -> tuple[float, float]:
    """Return when a span began and ended, in microseconds."""
    factor = _MICROSECONDS[span.unit]
    return span.began * factor, max(span.began, span.ended) * factor


def _marks(summary: RunSummary, pid: int) -> Iterator[Event]:
    """Yield the stages as marks and the bars as counters, each at the moment at which it was recorded."""
    for stage in summary.stages:
        yield {
            "ph": "i",
            "s": "g",
            "name": whole(stage.name),
            "pid": pid,
            "tid": 0,
            "ts": (stage.t - summary.first_t) / 1e3,
        }
    for figure in summary.figures.values():
        if isinstance(figure, BarsShown):
            pairs = zip(map(whole, figure.names), figure.values, strict=True)
            values = {name: value for name, value in pairs if math.isfinite(value)}
            yield {"ph": "C", "name": whole(figure.title), "pid": pid, "tid": 0, "ts": (figure.t - summary.first_t) / 1e3,
                   "args": values}  # fmt: skip


def _named(kind: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
