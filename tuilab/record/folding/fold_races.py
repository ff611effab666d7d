"""Folds the records of races."""

from tuilab.record import events
from tuilab.record.folding.arms_table import update_arms_table
from tuilab.record.folding.limits import keep
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block


def race_started(summary: RunSummary, stream: str, event: events.RaceStarted) -> None:
    summary.races.append((stream, event))  # without a limit, like blocks: verdicts rest on them


def block_timed(summary: RunSummary, stream: str, event: events.BlockTimed) -> None:
    """Keep a block with those of its control, or of its arm if it belongs to no control."""
    # Older versions timed the GPU by its events, and recorded 0 if their clock was too coarse.
    step_s = (event.device_ns or event.wall_ns) / event.loops / 1e9
    block = Block(
        round=event.round,
        step_s=step_s,
        is_warmup=event.is_warmup,
        is_disturbed=event.is_disturbed,
        is_rerun=event.is_rerun,
        wall_ns=event.wall_ns,
        records=event.records,
        t=event.t,
        loops=event.loops,
        cpu_ns=event.cpu_ns,
        thread_ns=event.thread_ns,
        waits=event.waits,
        submitted_ns=event.submitted_ns,
        steps=event.steps,
        disturbed_steps=event.disturbed_steps,
        waited_ns=event.waited_ns,
        helped_by=event.helped_by,
    )
    if event.control:
        summary.controls.setdefault((stream, event.arm, event.control), []).append(block)
    else:
        summary.blocks.setdefault((stream, event.arm), []).append(block)


def first_called(summary: RunSummary, stream: str, event: events.FirstCalled) -> None:
    keep(summary.first_calls.setdefault(event.arm, []), event.wall_ns / 1e9)


def cores_measured(summary: RunSummary, stream: str, event: events.CoresMeasured) -> None:
    keep(summary.cores.setdefault(event.processes, []), event.effective)


def cores_awaited(summary: RunSummary, stream: str, event: events.CoresAwaited) -> None:
    summary.core_waits = event


def device_used(summary: RunSummary, stream: str, event: events.DeviceUsed) -> None:
    summary.uses[event.arm] = event


def race_finished(summary: RunSummary, stream: str, event: events.RaceFinished) -> None:
    """Keep the end of a race; if it was of commands, show their table again."""
    summary.differences.append((stream, event))
    if event.accounts:
        update_arms_table(summary)
