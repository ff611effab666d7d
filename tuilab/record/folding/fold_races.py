"""What records of races change in the summary."""

from tuilab.record import events
from tuilab.record.folding.arms_table import ARMS, arms_table
from tuilab.record.folding.limits import keep
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block


def race_started(summary: RunSummary, stream: str, event: events.RaceStarted) -> None:
    summary.races.append((stream, event))  # as every block is: what verdicts rest on is never cut


def block_timed(summary: RunSummary, stream: str, event: events.BlockTimed) -> None:
    # Older versions timed the GPU by itself, and had 0 where the clock of its events was too coarse.
    step_s = (event.device_ns or event.wall_ns) / event.loops / 1e9
    block = Block(
        event.round, step_s, event.is_warmup, event.is_disturbed, event.is_rerun, event.wall_ns, event.records, event.t,
        event.loops, event.cpu_ns, event.thread_ns, event.waits, event.submitted_ns,
        event.steps, event.disturbed_steps, event.waited_ns, event.helped_by,
    )  # fmt: skip
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


def race_finished(summary: RunSummary, stream: str, event: events.RaceFinished) -> None:
    summary.differences.append((stream, event))
    if event.accounts:
        summary.figures[ARMS] = arms_table(summary)
