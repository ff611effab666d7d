"""Predict how small a difference a comparison of commands can detect, and how long it takes.

The predictions use earlier runs of the command, if there are any.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from tuilab.commands.ab.arm_amount import name_of
from tuilab.commands.make_order import RACE_TOPIC, TOPIC
from tuilab.engine.messages import RunOrder
from tuilab.errors import TuilabError
from tuilab.judging import stats
from tuilab.judging.clock import ClockKind, step_s
from tuilab.judging.evidence import MIN_UNITS
from tuilab.judging.interim_analyses import InterimAnalysis, decisive_analysis
from tuilab.record.blocks import is_on_cpu
from tuilab.record.live_run import Watch
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.runs.past_runs import runs_of
from tuilab.runs.run_name import kind_of_run
from tuilab.scrub import words_for_record
from tuilab.text.display import percent, plural
from tuilab.text.words import clock

_CONFIDENCE = 0.95  # of the interval of one claim
# The A/A control makes the smallest detectable effect larger by this factor: a third of the time,
# the control is off by more than its error (simulated).
_CONTROL = 1.2
# The variation between processes of a training script on a quiet machine. It is assumed for
# commands that were never timed against each other.
_USUAL_PROCESS_SD = 0.1
_MIN_PROCESSES = 3  # of an arm; fewer processes say little about the variation between them
_NEWEST = 5  # earlier runs to read
_LARGEST = 64 * 1024 * 1024  # bytes; an earlier run with a larger journal is not read


def foresee(order: RunOrder) -> list[str]:
    """Return, before the first process starts, what the run can detect and how long it takes."""
    assert order.command is not None
    earlier_runs = list(_read_earlier_runs(order))
    process_sd = _newest_process_sd(earlier_runs, order.command.measure)
    process_s = _newest_process_s(earlier_runs)
    processes = len(order.command.arms) + 1
    first = order.command.arms[0].name
    repeats = plural(order.repeats, "repeat")
    plan = f"{repeats} of {processes} processes ({first} runs twice, as the A/A control)"
    if order.looks:
        plan = f"up to {plan}"
    sensitivity = _describe_sensitivity(order, process_sd)
    return [f"{plan}: {sensitivity}", _describe_duration(order, processes, process_s)]


def _newest_process_sd(earlier_runs: Sequence[RunSummary], measure: str) -> float | None:
    """Return the variation between processes of the newest run that shows it, or None."""
    for past_run in earlier_runs:
        process_sd = process_sd_of(past_run, measure)
        if process_sd is not None:
            return process_sd
    return None


def _newest_process_s(earlier_runs: Sequence[RunSummary]) -> float | None:
    """Return how long a process of the newest run took that took any time, or None."""
    for past_run in earlier_runs:
        process_s = process_s_of(past_run)
        if process_s:
            return process_s
    return None


def _describe_sensitivity(order: RunOrder, process_sd: float | None) -> str:
    """Return in words how small a difference is detected four times in five."""
    assert order.command is not None
    if order.repeats < MIN_UNITS:
        return f"too few for verdicts, which need {MIN_UNITS}"
    if process_sd is None and order.command.measure:
        return "the smallest detectable difference is unknown before the run"
    source = "as last time"
    if process_sd is None:
        process_sd = _USUAL_PROCESS_SD
        source = "the usual value"
    analysis = decisive_analysis(order.repeats, order.looks)
    effect = smallest_seen(analysis, process_sd, len(order.command.claims))
    detected = f"a difference of {percent(math.expm1(effect))} is detected four times in five"
    if order.looks:
        detected = f"after {analysis.counts[-1]} {detected}"
    return f"{detected}, if processes vary by {percent(process_sd)} ({source})"


def smallest_seen(analysis: InterimAnalysis, process_sd: float, claims: int = 1) -> float:
    """Return the smallest log ratio that an interim analysis detects four times in five.

    `process_sd` is the standard deviation between processes, `claims` the number of claims.
    """
    count = analysis.counts[-1]
    ratio_sd = process_sd * math.sqrt(2 / count)
    confidence = analysis.confidence(_CONFIDENCE, claims)
    return _CONTROL * stats.smallest_effect(count, ratio_sd, confidence)


def _describe_duration(order: RunOrder, processes: int, process_s: float | None) -> str:
    """Return how long a run takes: its budget, or its processes times the time of one last time."""
    if order.budget_s:
        return f"runs until the claims are decided, or for {clock(order.budget_s)}"
    count = order.repeats * processes
    if process_s is None:
        unknown = "duration unknown: it has not run here before"
        return f"takes {count} times as long as the command ({unknown})"
    product = f"{count} times {clock(process_s)}, the time of the command last time"
    return f"takes about {clock(count * process_s)}: {product}"


def process_sd_of(summary: RunSummary, measure: str = "") -> float | None:
    """Return the variation between processes of an earlier run.

    That is the standard deviation of the logs of what one arm measured, pooled over the arms.
    None if the run measured something else, or too few processes.
    """
    if not any(race.measure == name_of(measure) for _, race in summary.races):
        return None
    judged_by: ClockKind = "cpu" if is_on_cpu(summary) else "wall"
    logs_by_arm: dict[str, list[float]] = {}
    for (_, arm), blocks in summary.blocks.items():
        logs = logs_by_arm.setdefault(arm, [])
        for block in blocks:
            if judged_by == "cpu" and not block.thread_ns:
                continue
            time_s = step_s(block, judged_by)
            if time_s > 0:
                logs.append(math.log(time_s))
    variances = []
    for logs in logs_by_arm.values():
        if len(logs) >= _MIN_PROCESSES:
            variances.append(stats.sample_sd(logs) ** 2)
    if not variances:
        return None
    return math.sqrt(fmean(variances))


def process_s_of(summary: RunSummary) -> float:
    """Return the mean seconds that one process of a run took.

    A run without blocks, the records of processes in a comparison, has one process.
    """
    processes = 0
    for blocks in summary.blocks.values():
        processes += len(blocks)
    for blocks in summary.controls.values():
        processes += len(blocks)
    return summary.elapsed_s / max(processes, 1)


def _read_earlier_runs(order: RunOrder) -> Iterator[RunSummary]:
    """Yield the newest runs of the same command that succeeded, newest first.

    Only the _NEWEST runs are looked at. One that is too large or cannot be read is skipped.
    """
    assert order.command is not None
    words = words_for_record(order.command.words)
    run_dirs: list[Path] = []
    for topic in (TOPIC, RACE_TOPIC):
        run_dirs += runs_of(kind_of_run(order.scenario, topic), Path(order.root))
    run_dirs.sort(reverse=True)
    for run_dir in run_dirs[:_NEWEST]:
        try:
            if _journal_bytes(run_dir) > _LARGEST:
                continue
            watch = Watch(run_dir)
            watch.catch_up()
            watch.close()
        except (OSError, TuilabError):
            continue
        run = watch.summary.run
        if run and run.command == words and watch.summary.state == RunState.SUCCEEDED:
            yield watch.summary


def _journal_bytes(run_dir: Path) -> int:
    return sum(stream.stat().st_size for stream in (run_dir / "journal").iterdir())
