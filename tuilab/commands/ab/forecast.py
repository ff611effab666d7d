"""Predict how small a difference a comparison of commands can detect, and how long it takes.

The predictions use earlier runs of the command, if there are any.
"""

import math
from collections.abc import Iterator
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

_CONFIDENCE = 0.95
# The A/A control makes the smallest detectable effect larger by this factor: a third of the time,
# the control is off by more than its error (simulated).
_CONTROL = 1.2
# The variation between processes of a training script on a quiet machine. It is assumed for
# commands that were never timed against each other.
_USUAL_LUCK = 0.1
_NEWEST = 5  # earlier runs to read
_LARGEST = 64 * 1024 * 1024  # bytes; an earlier run with a larger journal is not read


def foresee(order: RunOrder) -> list[str]:
    """Return, before the first process starts, what the run can detect and how long it takes."""
    assert order.command is not None
    earlier = list(_earlier(order))
    luck = next(
        (
            luck
            for past_run in earlier
            if (luck := luck_of(past_run, order.command.measure)) is not None
        ),
        None,
    )
    process_s = next((run_s for past_run in earlier if (run_s := process_s_of(past_run))), None)
    processes, first = len(order.command.arms) + 1, order.command.arms[0].name
    what = (
        f"{plural(order.repeats, 'repeat')} of {processes} processes ({first} runs twice, as the"
        " A/A control)"
    )
    if order.looks:
        what = f"up to {what}"
    return [f"{what}: {_seen(order, luck)}", _how_long(order, processes, process_s)]


def _seen(order: RunOrder, luck: float | None) -> str:
    """Return in words how small a difference is detected four times in five."""
    assert order.command is not None
    if order.repeats < MIN_UNITS:
        return f"too few for verdicts, which need {MIN_UNITS}"
    if luck is None and order.command.measure:
        return "the smallest detectable difference is unknown before the run"
    look = decisive_analysis(order.repeats, order.looks)
    count, spread = look.counts[-1], _USUAL_LUCK if luck is None else luck
    effect = smallest_seen(look, spread, len(order.command.claims))
    by = "the usual value" if luck is None else "as last time"
    after = f"after {count} " if order.looks else ""
    sentence = (
        f"{after}a difference of {percent(math.expm1(effect))} is detected four times in five"
    )
    return f"{sentence}, if processes vary by {percent(spread)} ({by})"


def smallest_seen(look: InterimAnalysis, luck: float, claims: int = 1) -> float:
    """Return the smallest log ratio that an interim analysis detects four times in five.

    `luck` is the standard deviation between processes, `claims` the number of claims.
    """
    count = look.counts[-1]
    return _CONTROL * stats.smallest_effect(
        count, luck * math.sqrt(2 / count), look.confidence(_CONFIDENCE, claims)
    )


def _how_long(order: RunOrder, processes: int, process_s: float | None) -> str:
    count = order.repeats * processes
    if order.budget_s:
        return f"runs until the claims are decided, or for {clock(order.budget_s)}"
    if process_s is None:
        return (
            f"takes {count} times as long as the command (duration unknown: it has not run here"
            " before)"
        )
    return (
        f"takes about {clock(count * process_s)}: {count} times {clock(process_s)}, the time of the"
        " command last time"
    )


def luck_of(summary: RunSummary, measure: str = "") -> float | None:
    """Return the variation between processes of an earlier run.

    That is the standard deviation of the logs of what one arm measured, pooled over the arms.
    None if the run measured something else, or too few processes.
    """
    if not any(race.measure == name_of(measure) for _, race in summary.races):
        return None
    judged_by: ClockKind = "cpu" if is_on_cpu(summary) else "wall"
    by_arm: dict[str, list[float]] = {}
    for (_, arm), blocks in summary.blocks.items():
        times = [
            step_s(block, judged_by) for block in blocks if judged_by == "wall" or block.thread_ns
        ]
        by_arm.setdefault(arm, []).extend(math.log(time_s) for time_s in times if time_s > 0)
    squares = [stats.sample_sd(logs) ** 2 for logs in by_arm.values() if len(logs) >= 3]
    return math.sqrt(fmean(squares)) if squares else None


def process_s_of(summary: RunSummary) -> float:
    """Return the mean seconds that one process of a run took."""
    blocks = [*summary.blocks.values(), *summary.controls.values()]
    return summary.elapsed_s / max(sum(map(len, blocks)), 1)


def _earlier(order: RunOrder) -> Iterator[RunSummary]:
    """Yield the newest runs of the same command that succeeded."""
    assert order.command is not None
    words = words_for_record(order.command.words)
    kinds = (kind_of_run(order.scenario, verb) for verb in (TOPIC, RACE_TOPIC))
    runs = sorted((run for kind in kinds for run in runs_of(kind, Path(order.root))), reverse=True)
    for run_dir in runs[:_NEWEST]:
        try:
            if sum(stream.stat().st_size for stream in (run_dir / "journal").iterdir()) > _LARGEST:
                continue
            watch = Watch(run_dir)
            watch.catch_up()
            watch.close()
        except (OSError, TuilabError):
            continue
        run = watch.summary.run
        if run and run.command == words and watch.summary.state == RunState.SUCCEEDED:
            yield watch.summary
