"""What `run` and `attach` share: follow runs one after another, and print what came of them once, at the end."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import TextIO

from tuilab.cli import headless, options
from tuilab.drawings.glyphs import style_of
from tuilab.engine import launch
from tuilab.engine.messages import RunOrder
from tuilab.engine.spare import Spare, prepare
from tuilab.errors import ExitCode
from tuilab.interrupts import OneByOne
from tuilab.judging import calibration
from tuilab.record.encoding import for_programs
from tuilab.record.journal.follower import Portion
from tuilab.record.live_run import Watch
from tuilab.record.summary import RunSummary
from tuilab.reports.result import results_of
from tuilab.reports.result_text import render
from tuilab.reports.several_text import FinishedRun, line_of, overview
from tuilab.runs import earlier_verdicts, queue, store
from tuilab.runs.command_line import hint
from tuilab.text.display import show

_AHEAD = (
    4  # runs that torch is loaded for ahead of their turn, at most: each takes 150 MB for itself
)


@dataclass
class Outcome:
    """How results are wanted, and those that came."""

    as_json: bool = False
    as_jsonl: bool = False
    is_strict: bool = False
    is_quiet: bool = False
    has_chart: bool = False
    is_silent: bool = False  # whoever asked prints what came of it
    is_verbose: bool = False  # of several runs each whole result is wanted, not only the summary
    tells_alerts: bool = False  # and nothing else, while a run goes on
    report: str = ""  # a file that is written at the end
    where: str = ""  # in a sweep: stands before all that is told of the run
    left: str = ""  # what is told to be left by an interrupt; empty: the run that is followed
    pass_on: Callable[[RunSummary], object] | None = (
        None  # called again and again while a run goes on
    )
    result: TextIO | None = None  # where a result is printed; None: stdout
    watched: list[tuple[Watch, str]] = field(
        default_factory=list
    )  # the runs as they were read, and their states
    codes: list[ExitCode] = field(default_factory=list)

    def __post_init__(self) -> None:
        options.refuse_both_json(as_json=self.as_json, as_jsonl=self.as_jsonl)

    def take(self, watch: Watch, state: str) -> None:
        """Keep the result of a run that is over, and print it if each is printed by itself."""
        code = headless.exit_code(watch.summary, state, is_strict=self.is_strict)
        self.codes.append(ExitCode.INTERRUPTED if watch.was_interrupted else code)
        self.watched.append((watch, state))
        if not (self.as_json or self.as_jsonl or self.is_silent):
            width = _terminal_width()
            style = style_of(self.result or sys.stdout)
            trust = calibration.describe_trust(watch.summary)
            before = earlier_verdicts.record_earlier_verdicts(watch.run_dir, watch.summary)
            has_chart = self.has_chart
            shown = render(
                watch.summary,
                state,
                watch.run_dir,
                style,
                width,
                has_chart=has_chart,
                trust=trust,
                before=before,
            )
            print_result(style.fit(shown), self.result)

    def finish(self) -> ExitCode:
        """Print what is printed once, at the end, and return the exit code."""
        code = headless.worst(self.codes)
        runs = [FinishedRun(watch.summary, state, watch.run_dir) for watch, state in self.watched]
        if self.as_json:
            finished = [(run.summary, run.state, run.run_dir) for run in runs]
            print_result(for_programs(results_of(finished, code)))
        elif len(runs) > 1 and not self.as_jsonl:
            style = style_of(sys.stdout)
            print_result(style.fit(overview(runs, style, _terminal_width())))
        if self.report and runs:
            self._write_report()
        return code

    def _write_report(self) -> None:
        from tuilab.reports.write_report import format_of, read_subjects, write

        write(
            read_subjects([watch.run_dir for watch, _ in self.watched]),
            self.report,
            format_of(self.report),
        )
        if self.report != "-" and not self.is_quiet:
            _say(f"report: {show(self.report, 500)}")


def run_all(orders: list[RunOrder], outcome: Outcome, first: Spare | None = None) -> ExitCode:
    """Run orders of scenarios one after another, the first in a spare if there is one; an interrupt ends the line.

    Several of them get a summary at the end. Their whole results are printed only if that is wanted.
    """
    has_summary_only = len(orders) > 1 and not outcome.is_verbose
    outcome.is_silent |= has_summary_only
    numbers = count(1)

    def tell(order: RunOrder) -> None:
        if not outcome.is_quiet:
            _tell_others(order)
        if has_summary_only:
            outcome.where = f"{next(numbers)} of {len(orders)}: {show(order.scenario)}"

    for _ in run_each(orders, outcome, tell, first):
        if has_summary_only and not outcome.is_quiet and not _is_live() and outcome.watched:
            watch, state = outcome.watched[-1]
            style = style_of(sys.stderr)
            _say(
                style.fit(
                    f"{outcome.where}: {line_of(FinishedRun(watch.summary, state, watch.run_dir), style)}"
                )
            )
    return outcome.finish()


def run_each(
    orders: Sequence[RunOrder],
    outcome: Outcome,
    tell: Callable[[RunOrder], object],
    first: Spare | None = None,
) -> Iterator[RunOrder]:
    """Run orders one after another, each told before, and keep their results; yield each that is over. An interrupt ends it."""
    spares = {0: first}
    for number, order in enumerate(orders):
        tell(order)
        with OneByOne():
            run_dir, supervisor = launch.start(order, spares.pop(number, None))
            spares.update(
                (later, prepare(is_timed=orders[later].wants_quiet))
                for later in _next(orders, number)
                if later not in spares
            )
            follow_one(run_dir, outcome, is_ours=True, pause=headless.pause_beside(supervisor.pid))
        with contextlib.suppress(
            subprocess.TimeoutExpired
        ):  # the record of its end is there; all that is left is its exit
            supervisor.wait(10)
        yield order
        if outcome.codes[-1] == ExitCode.INTERRUPTED:
            break
    for spare in filter(None, spares.values()):
        spare.dismiss()


def _next(orders: Sequence[RunOrder], number: int) -> list[int]:
    """Return the runs behind one that begins for which torch may be loaded now: one a core, none beside what wants quiet."""
    loud = [*takewhile(lambda order: not order.wants_quiet, orders[number:])]
    most = min(len(loud), len(os.sched_getaffinity(0)), _AHEAD)
    behind = range(number + 1, min(number + 1 + most, len(orders)))
    return [later for later in behind if orders[later].imports and orders[later].repeats == 1]


def _tell_others(order: RunOrder) -> None:
    """Say who else times something on the device of a run that starts without waiting for it."""
    others = [
        one for one in queue.running(Path(order.root)) if queue.share(one.devices, order.devices)
    ]
    if others:
        names = ", ".join(f"{show(one.name)} {store.short_id(one.run)}" for one in others)
        step = hint(Path(order.root), "queue")
        _say(
            f"also running on this device: {names}; all will be slower, and their times less reliable; see all runs: {step}"
        )


def follow_one(
    run_dir: Path, outcome: Outcome, *, is_ours: bool, pause: headless.Pause = time.sleep
) -> None:
    """Follow a run to its end and keep its result; leave one that is not ours when interrupted."""
    watch = Watch(run_dir, may_be_folded=not outcome.as_jsonl)
    talk: headless.Talk = (
        headless.Alerts(style_of(sys.stderr)) if outcome.tells_alerts else headless.Quiet()
    )
    if not outcome.is_quiet:
        talk = (headless.Live if _is_live() else headless.Plain)(
            style_of(sys.stderr), outcome.where
        )

    def pass_on(items: Portion) -> None:
        if outcome.as_jsonl:
            print_result(
                "\n".join(headless.json_line(run_dir, stream, item) for stream, item in items)
            )

    state = headless.follow(
        watch, talk, pass_on, is_ours=is_ours, on_summary=outcome.pass_on, pause=pause
    )
    if watch.was_interrupted and not is_ours:
        name = outcome.left or store.short_id(run_dir.name)
        back, end = (hint(run_dir.parent, verb, name) for verb in ("attach", "stop"))
        _say(f"\n{name} continues in the background; follow it again: {back}   stop it: {end}")
        outcome.codes.append(ExitCode.INTERRUPTED)
    else:
        outcome.take(watch, state)
    watch.close()


def _is_live() -> bool:
    """Return whether progress is a line that changes in place."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "")


def _terminal_width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def print_result(text: str, where: TextIO | None = None) -> None:
    """Print a result; a reader that has gone (`| head`) never ends a run."""
    try:
        print(text, file=where, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), (where or sys.stdout).fileno())


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)
