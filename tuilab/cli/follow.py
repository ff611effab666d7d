"""Run orders without the screens or follow a run, and print the results.

`run`, `exec`, `ab`, `sweep`, `attach` and `calibrate` share this.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tuilab.cli import headless, options
from tuilab.cli.exit_codes import exit_code_of_run, exit_code_of_runs
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

if TYPE_CHECKING:
    from tuilab.reports.reported_run import ReportedRun

_MAX_SPARES = 4  # processes that load torch ahead of their turn; each takes 150 MB for itself


@dataclass
class ResultPrinter:
    """Collects the results of runs, and prints them as the options of the subcommand ask."""

    as_json: bool = False
    as_jsonl: bool = False
    is_strict: bool = False
    is_quiet: bool = False  # no progress
    is_silent: bool = False  # no result of each run: the caller prints the results
    is_verbose: bool = False  # of several runs, print each whole result, not only the summary
    has_chart: bool = False
    has_alerts: bool = False  # of a quiet run, print the alerts
    report: str = ""  # a file that is written at the end
    label: str = ""  # names a point of a sweep, at the start of each line of its progress
    followed_name: str = ""  # printed when Ctrl-C ends the following; empty: the id of the run
    on_summary: Callable[[RunSummary], object] | None = None  # called at each poll of a run
    stream: TextIO | None = None  # results are printed there; None: stdout
    finished: list[tuple[Watch, str]] = field(default_factory=list)  # runs with their states
    codes: list[ExitCode] = field(default_factory=list)

    def __post_init__(self) -> None:
        options.refuse_both_json(as_json=self.as_json, as_jsonl=self.as_jsonl)

    def add(self, watch: Watch, state: str) -> None:
        """Keep the result and the exit code of a finished run; print the result if asked for.

        With JSON, or if the printer is silent, the caller or `finish` prints it.
        """
        code = exit_code_of_run(watch.summary, state, is_strict=self.is_strict)
        self.codes.append(ExitCode.INTERRUPTED if watch.was_interrupted else code)
        self.finished.append((watch, state))
        if self.as_json or self.as_jsonl or self.is_silent:
            return
        style = style_of(self.stream or sys.stdout)
        trust = calibration.describe_trust(watch.summary)
        earlier = earlier_verdicts.describe_earlier_verdicts(watch.run_dir, watch.summary)
        text = render(
            watch.summary,
            state,
            watch.run_dir,
            style,
            terminal_width(),
            has_chart=self.has_chart,
            trust=trust,
            earlier=earlier,
        )
        print_result(style.fit(text), self.stream)

    def finish(self) -> ExitCode:
        """Print the parts that come once, at the end, write the report, return the exit code."""
        code = exit_code_of_runs(self.codes)
        runs = [FinishedRun(watch.summary, state, watch.run_dir) for watch, state in self.finished]
        if self.as_json:
            triples = [(run.summary, run.state, run.run_dir) for run in runs]
            print_result(for_programs(results_of(triples, code)))
        elif len(runs) > 1 and not self.as_jsonl:
            style = style_of(sys.stdout)
            print_result(style.fit(overview(runs, style, terminal_width())))
        if self.report and runs:
            from tuilab.reports.write_report import read_subjects

            self.write_report(read_subjects([run.run_dir for run in runs]))
        return code

    def write_report(self, subjects: "list[ReportedRun]") -> None:
        """Write the report that the user asked for, and print its name."""
        from tuilab.reports.write_report import format_of, write

        write(subjects, self.report, format_of(self.report))
        if self.report != "-" and not self.is_quiet:
            print_progress(f"report: {show(self.report, 500)}")


# ---- running orders


def run_all(orders: list[RunOrder], printer: ResultPrinter, first: Spare | None = None) -> ExitCode:
    """Run orders one after another, print the results and return the exit code.

    `first` is a process that has loaded torch for the first order. Of several runs only a summary
    is printed, unless `printer.is_verbose`; this changes `printer`. Ctrl-C skips the orders that
    have not started.
    """
    has_summary_only = len(orders) > 1 and not printer.is_verbose
    if has_summary_only:
        printer.is_silent = True
    number = 0

    def announce(order: RunOrder) -> None:
        nonlocal number
        number += 1
        if not printer.is_quiet:
            _warn_of_other_runs(order)
        if has_summary_only:
            printer.label = f"{number} of {len(orders)}: {show(order.scenario)}"

    has_lines = has_summary_only and not printer.is_quiet and not _has_live_line()
    for _ in run_each(orders, printer, announce, first):
        if has_lines and printer.finished:
            watch, state = printer.finished[-1]
            style = style_of(sys.stderr)
            result = line_of(FinishedRun(watch.summary, state, watch.run_dir), style)
            print_progress(style.fit(f"{printer.label}: {result}"))
    return printer.finish()


def run_each(
    orders: Sequence[RunOrder],
    printer: ResultPrinter,
    announce: Callable[[RunOrder], object],
    first: Spare | None = None,
) -> Iterator[RunOrder]:
    """Run orders one after another and keep their results; yield each order when its run is over.

    `announce` is called before each run. Ctrl-C skips the orders that have not started, and adds
    the code INTERRUPTED. `first`, and other processes that load torch in advance, are ended if they
    are not used.
    """
    spares = {0: first}
    for number, order in enumerate(orders):
        announce(order)
        try:
            with OneByOne():
                run_dir, supervisor = launch.start(order, spares.pop(number, None))
                for later in _find_orders_to_prepare(orders, number):
                    if later not in spares:
                        spares[later] = prepare(is_timed=orders[later].wants_quiet)
                pause = headless.make_pause(supervisor.pid)
                follow_one(run_dir, printer, is_ours=True, pause=pause)
        except KeyboardInterrupt:  # before the run could be followed: the others have results
            printer.codes.append(ExitCode.INTERRUPTED)
            break
        # The end of the run is recorded by now, so only the exit of its supervisor is left.
        with contextlib.suppress(subprocess.TimeoutExpired):
            supervisor.wait(10)
        yield order
        if printer.codes[-1] == ExitCode.INTERRUPTED:
            break
    for spare in spares.values():
        if spare:
            spare.dismiss()


def _find_orders_to_prepare(orders: Sequence[RunOrder], number: int) -> list[int]:
    """Return the positions of later orders for which torch may be loaded during order `number`.

    There is at most one for each core, and none while a run needs a quiet machine. An order with
    several repeats loads torch itself.
    """
    loud_orders = list(takewhile(lambda order: not order.wants_quiet, orders[number:]))
    most = min(len(loud_orders), len(os.sched_getaffinity(0)), _MAX_SPARES)
    candidates = range(number + 1, min(number + 1 + most, len(orders)))
    positions = []
    for position in candidates:
        if orders[position].imports and orders[position].repeats == 1:
            positions.append(position)
    return positions


def _warn_of_other_runs(order: RunOrder) -> None:
    """Print which runs already use the device of a run that starts without waiting for them."""
    names = []
    for run in queue.running(Path(order.root)):
        if queue.may_share_device(run.devices, order.devices):
            names.append(f"{show(run.name)} {store.short_id(run.run)}")
    if names:
        step = hint(Path(order.root), "queue")
        print_progress(
            f"also running on this device: {', '.join(names)}; all will be slower, "
            f"and their times less reliable; see all runs: {step}"
        )


# ---- following one run


def follow_one(
    run_dir: Path, printer: ResultPrinter, *, is_ours: bool, pause: headless.Pause = time.sleep
) -> None:
    """Follow a run to its end, and keep its result and exit code in `printer`.

    If the run is ours, Ctrl-C stops it. Otherwise Ctrl-C ends only the following, and prints how to
    come back to the run. `pause` waits between two polls.
    """
    watch = Watch(run_dir, may_be_folded=not printer.as_jsonl)

    def print_items(items: Portion) -> None:
        if printer.as_jsonl:
            lines = [headless.json_line(run_dir, stream, item) for stream, item in items]
            print_result("\n".join(lines))

    state = headless.follow(
        watch,
        _choose_progress(printer),
        print_items,
        is_ours=is_ours,
        on_summary=printer.on_summary,
        pause=pause,
    )
    if watch.was_interrupted and not is_ours:
        name = printer.followed_name or store.short_id(run_dir.name)
        attach = hint(run_dir.parent, "attach", name)
        stop = hint(run_dir.parent, "stop", name)
        continues = f"{name} continues in the background"
        print_progress(f"\n{continues}; follow it again: {attach}   stop it: {stop}")
        printer.codes.append(ExitCode.INTERRUPTED)
    else:
        printer.add(watch, state)
    watch.close()


def _choose_progress(printer: ResultPrinter) -> headless.Progress:
    """Return how progress is printed: as a live line, as lines, as alerts, or not at all."""
    style = style_of(sys.stderr)
    if not printer.is_quiet:
        if _has_live_line():
            return headless.LiveProgress(style, printer.label)
        return headless.PlainProgress(style, printer.label)
    if printer.has_alerts:
        return headless.AlertLines(style)
    return headless.NoProgress()


def _has_live_line() -> bool:
    """Return whether progress is a line that changes in place."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "")


# ---- printing


def terminal_width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def print_result(text: str, stream: TextIO | None = None) -> None:
    """Print a result to `stream` or stdout; a reader that has gone (`| head`) never ends a run."""
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def print_progress(sentence: str) -> None:
    """Print a sentence to stderr at once, where progress and warnings go."""
    print(sentence, file=sys.stderr, flush=True)
