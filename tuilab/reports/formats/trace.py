"""Render when things ran, for Chrome's trace viewer and Perfetto.

Each writer of blocks, which is a process that timed arms, is a process of the trace with a lane (a
thread) for each arm. A block is a timed batch of calls of an arm. Each picture of spans is a
process as well; it begins at 0, because its clock may be its own.
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
from tuilab.reports.formats.safe_names import distinct_names, safe_name
from tuilab.reports.missing_data import damage
from tuilab.reports.reported_run import ReportedRun

# Microseconds in a unit of spans; other units are not of time.
_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "µs": 1.0, "ns": 1e-3}
_MAX_US = 1e15  # some thirty years: viewers show nothing that long

Event = dict[str, Any]


def render(subjects: Sequence[ReportedRun]) -> str:
    return json.dumps(trace(subjects), indent=1, allow_nan=False) + "\n"


def trace(subjects: Sequence[ReportedRun]) -> dict[str, Any]:
    """Return the Trace Event Format, in microseconds since the first record of each run.

    Runs whose record is damaged are listed in `otherData`. Raise `UsageError` if no run has a block
    or a span in time, because viewers would show an empty page.
    """
    numbers = count(1)  # shared by processes and lanes, so that no two have the same number
    events: list[Event] = []
    damaged = {}
    for subject, name in zip(subjects, distinct_names(subjects), strict=True):
        events += _list_events(subject, name, numbers)
        problems = damage(subject)
        if problems:
            damaged[subject.run_dir.name] = " ".join(problems)
    if not any(event["ph"] == "X" for event in events):
        raise UsageError(
            "a trace shows what ran when, and this run has neither a race nor spans in time;"
            " choose .json or .csv"
        )
    other_data = {}
    if damaged:
        other_data["damaged"] = damaged
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": other_data}


def _list_events(subject: ReportedRun, name: str, numbers: Iterator[int]) -> Iterator[Event]:
    """Yield the events of a run: its blocks, its spans, then a process for its stages and bars.

    `numbers` gives the next free number of a process or lane.
    """
    title = name
    if subject.id not in name:
        title += f" {subject.id}"
    yield from _list_blocks(subject.summary, title, numbers)
    yield from _list_spans(subject.summary, title, numbers)
    pid = next(numbers)
    if damage(subject):
        title += " DAMAGED"
    yield _name_event("process_name", pid, 0, title)
    yield from _list_marks(subject.summary, pid)


def _name_event(kind: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


# ---- blocks


def _list_blocks(summary: RunSummary, title: str, numbers: Iterator[int]) -> Iterator[Event]:
    """Yield the timed blocks of a run, controls on lanes of their own.

    Nothing is yielded if commands were compared by something else than time.
    """
    if measure_of(summary).unit != "s":
        return
    lanes = []
    for (writer, arm), blocks in in_order(summary).items():
        lanes.append((writer, arm, "block", blocks))
    for (writer, arm, control), blocks in summary.controls.items():
        lanes.append((writer, f"{arm} ({control})", "control", blocks))
    pids: dict[str, int] = {}
    for writer, *_ in lanes:
        if writer not in pids:
            pids[writer] = next(numbers)
            yield _name_event("process_name", pids[writer], 0, f"{title} {safe_name(writer)}")
    for writer, name, category, blocks in lanes:
        pid = pids[writer]
        tid = next(numbers)
        shown_name = safe_name(name)
        yield _name_event("thread_name", pid, tid, shown_name)
        for block in blocks:
            event = {"ph": "X", "name": shown_name, "cat": category, "pid": pid, "tid": tid}
            yield event | _describe_block(block, summary.first_t)


def _describe_block(block: Block, first_t: int) -> Event:
    """Return the begin, duration and details of a block. A block is recorded when it ends."""
    facts = {
        "round": block.round,
        "step_s": block.step_s,
        "loops": block.loops,
        "warm-up": block.is_warmup,
        "disturbed": block.is_disturbed,
        "rerun": block.is_rerun,
    }
    if block.thread_s is not None:
        facts["thread_s"] = block.thread_s
    began_us = (block.t - block.wall_ns - first_t) / 1e3
    return {"ts": began_us, "dur": block.wall_ns / 1e3, "args": facts}


# ---- spans


def _list_spans(summary: RunSummary, title: str, numbers: Iterator[int]) -> Iterator[Event]:
    """Yield the spans of a scenario. Spans in steps or bytes are left out: they are not times."""
    spans_of_arm: dict[str, list[SpanShown]] = {}
    for (arm, _), spans in summary.spans.items():
        spans_in_time = [span for span in spans if _is_in_time(span)]
        spans_of_arm.setdefault(arm, []).extend(spans_in_time)
    for arm, spans in spans_of_arm.items():
        if spans:
            pid = next(numbers)
            name = f"{title} spans {safe_name(arm)}".strip()
            yield _name_event("process_name", pid, 0, name)
            yield from _list_lanes(spans, pid, numbers)


def _is_in_time(span: SpanShown) -> bool:
    if span.unit not in _MICROSECONDS:
        return False
    return all(abs(edge) < _MAX_US for edge in _edges_us(span))


def _edges_us(span: SpanShown) -> tuple[float, float]:
    """Return when a span began and ended."""
    factor = _MICROSECONDS[span.unit]
    return span.began * factor, max(span.began, span.ended) * factor


def _list_lanes(spans: Sequence[SpanShown], pid: int, numbers: Iterator[int]) -> Iterator[Event]:
    """Yield spans lane by lane. Overlapping spans of a lane are put into several lanes.

    In one lane, viewers want them nested or apart.
    """
    start_us = min(_edges_us(span)[0] for span in spans)
    ends_us: dict[tuple[str, int], float] = {}  # of the last span of each lane
    tids: dict[tuple[str, int], int] = {}
    for span in sorted(spans, key=_edges_us):
        began_us, ended_us = _edges_us(span)
        number = 0
        while ends_us.get((span.lane, number), began_us) > began_us:
            number += 1
        lane = (span.lane, number)
        if lane not in tids:
            tids[lane] = next(numbers)
            yield _name_event("thread_name", pid, tids[lane], safe_name(span.lane))
        ends_us[lane] = ended_us
        yield {
            "ph": "X",
            "name": safe_name(span.name or span.lane),
            "cat": "span",
            "pid": pid,
            "tid": tids[lane],
            "ts": began_us - start_us,
            "dur": ended_us - began_us,
        }


# ---- stages and bars


def _list_marks(summary: RunSummary, pid: int) -> Iterator[Event]:
    """Yield the stages as marks and the bars as counters, each at the time of its record."""
    for stage in summary.stages:
        yield {
            "ph": "i",
            "s": "g",
            "name": safe_name(stage.name),
            "pid": pid,
            "tid": 0,
            "ts": (stage.t - summary.first_t) / 1e3,
        }
    for figure in summary.figures.values():
        if isinstance(figure, BarsShown):
            values = {}
            for name, value in zip(figure.names, figure.values, strict=True):
                if math.isfinite(value):
                    values[safe_name(name)] = value
            yield {
                "ph": "C",
                "name": safe_name(figure.title),
                "pid": pid,
                "tid": 0,
                "ts": (figure.t - summary.first_t) / 1e3,
                "args": values,
            }
