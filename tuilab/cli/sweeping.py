"""Run or follow the points of a sweep, and print the result of the whole sweep."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from tuilab.cli.exit_codes import exit_code_of_run, exit_code_of_runs
from tuilab.cli.follow import (
    ResultPrinter,
    follow_one,
    print_progress,
    print_result,
    run_each,
    terminal_width,
)
from tuilab.drawings.glyphs import Style, style_of
from tuilab.engine.messages import RunOrder
from tuilab.errors import ExitCode
from tuilab.record import presence
from tuilab.record.encoding import for_programs
from tuilab.record.events import Sweep
from tuilab.record.states import RUNNING_STATES
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.sweeps.document import sweep_document
from tuilab.reports.sweeps.points import point_words, varied_settings
from tuilab.reports.sweeps.sweep_summary import runs_of_points, summarise_sweep, sweep_of
from tuilab.reports.sweeps.text import render
from tuilab.reports.write_report import read_subjects
from tuilab.runs import store, sweeps
from tuilab.runs.command_line import hint
from tuilab.runs.entry import RunEntry
from tuilab.scrub import words_for_record
from tuilab.text.display import GONE, plural

_POLL_S = 0.2  # between two looks for the next point
_NEXT_POINT_S = 3.0  # a sweep that runs starts its next point within this time


def run_points(
    orders: Sequence[RunOrder],
    root: Path,
    printer: ResultPrinter,
    run_remotely: Callable[[list[RunOrder]], None] | None = None,
) -> ExitCode:
    """Run the points one after another, or all on other machines, and print the result.

    After Ctrl-C the results so far are kept and printed. `run_remotely` runs all of them elsewhere,
    and keeps the results in `printer`. Returns the exit code of the sweep.
    """
    orders = _with_this_process(orders)
    sweep = orders[0].sweep
    assert sweep is not None
    if not printer.is_quiet:
        step = _describe_resume(sweep, root, "if it is interrupted, continue")
        print_progress(f"{sweep.id}: {plural(len(orders), 'point')}; {step}")
    if run_remotely:
        run_remotely([structs.replace(order, waits=False) for order in orders])
        return _finish(sweep.id, root, printer)
    varied = varied_settings(sweep)
    number = 0

    def announce(order: RunOrder) -> None:
        nonlocal number
        number += 1
        assert order.sweep is not None
        printer.label = f"{number}/{len(orders)} {point_words(order.sweep.point, varied)}"

    for _ in run_each(orders, printer, announce):
        _print_point(printer)
    return _finish(sweep.id, root, printer)


def _with_this_process(orders: Sequence[RunOrder]) -> list[RunOrder]:
    """Return the orders with the identity of this process, which starts one point after another.

    `tuilab stop SWEEP` stops this process as well; records call it the front of the sweep.
    """
    this_process = None
    with contextlib.suppress(OSError):  # /proc is not readable; the first point reports that
        this_process = presence.identify(os.getpid())
    points = []
    for order in orders:
        if order.sweep:
            sweep = structs.replace(order.sweep, front=this_process)
            points.append(structs.replace(order, sweep=sweep))
    return points


def follow_sweep(reference: str, root: Path, printer: ResultPrinter) -> ExitCode:
    """Follow the unfinished points of a sweep, one after another, and print the result.

    Ctrl-C ends the following and leaves the points alone.
    """
    begun = sweeps.find(reference, root)
    printer.is_silent = True
    printer.followed_name = begun.sweep.id
    if begun.unfinished and not printer.is_quiet:
        print_progress(f"{begun.sweep.id}: {sweeps.describe_counts(begun.counts)}")
    for entry in _wait_for_points(begun):
        printer.label = point_words(entry.point, varied_settings(begun.sweep))
        follow_one(root / entry.run, printer, is_ours=False)
        if printer.codes[-1] == ExitCode.INTERRUPTED:
            return ExitCode.INTERRUPTED
        _print_point(printer)
    return print_sweep_result(begun.sweep.id, root, printer)


def _wait_for_points(begun: sweeps.RecordedSweep) -> Iterator[RunEntry]:
    """Yield each point that is running or queued.

    If another process starts the points one after another, this waits a moment for the next one.
    """
    yielded: set[str] = set()
    wait_until_s = 0.0
    while True:
        new_entries = [entry for entry in begun.unfinished if entry.run not in yielded]
        if new_entries:
            yielded |= {entry.run for entry in new_entries}
            yield from new_entries
            wait_until_s = time.monotonic() + _NEXT_POINT_S
        elif not begun.counts[sweeps.NOT_BEGUN] or time.monotonic() > wait_until_s:
            return
        else:
            time.sleep(_POLL_S)
        begun = sweeps.find(begun.sweep.id, begun.root)


def _print_point(printer: ResultPrinter) -> None:
    """Print the result of the latest point as a line of progress."""
    style = style_of(sys.stderr)
    if not printer.is_quiet:
        print_progress(style.fit(_point_line(printer, style)))


def _point_line(printer: ResultPrinter, style: Style) -> str:
    """Return the label of the latest point with its result; `not finished` without any result."""
    if not printer.finished:
        return f"{printer.label}: not finished"
    watch, state = printer.finished[-1]
    marks = "".join(style.mark(claim.outcome) for claim in watch.summary.claims.values())
    run_id = store.short_id(watch.run_dir.name)
    return f"{printer.label}: {state}  {marks}  {watch.summary.elapsed_s:.1f} s  {run_id}"


def _finish(sweep_id: str, root: Path, printer: ResultPrinter) -> ExitCode:
    """Print the result of a sweep, unless no point could be started; return the exit code."""
    code = exit_code_of_runs(printer.codes)
    if not printer.finished and not _has_points(sweep_id, root):  # the reason was printed
        return code
    return print_sweep_result(sweep_id, root, printer, code)


def _has_points(sweep_id: str, root: Path) -> bool:
    return any(entry.sweep == sweep_id for entry in sweeps.list_points(root))


# ---- the result of a sweep


def print_sweep_result(
    reference: str, root: Path, printer: ResultPrinter, code: ExitCode | None = None
) -> ExitCode:
    """Print the result of a sweep, write its report and return the exit code.

    Without `code`, it is computed from the finished runs that represent the points.
    """
    begun = sweeps.find(reference, root)
    entries = {entry.run: entry for entry in begun.entries}
    subjects = []
    for subject in read_subjects(begun.runs):
        subjects.append(replace(subject, of_sweep=entries[subject.run_dir.name]))
    result = summarise_sweep(subjects)
    if code is None:
        representatives = runs_of_points(result.sweep, subjects)
        code = _exit_code_of_points(representatives, is_strict=printer.is_strict)
    if printer.as_json:
        print_result(for_programs(sweep_document(result, subjects, code)))
    else:
        style = style_of(sys.stdout)
        text = render(result, style, terminal_width(), has_chart=printer.has_chart)
        print_result(style.fit(text))
        if result.missing:
            points = plural(len(result.missing), "point")
            step = _describe_resume(result.sweep, root, "run the missing points")
            print_progress(f"tuilab: {points} without a result; {step}")
    if printer.report:
        printer.write_report(subjects)
    return code


def _exit_code_of_points(
    representatives: Sequence[ReportedRun | None], *, is_strict: bool
) -> ExitCode:
    """Return the exit code of the finished runs among those that represent the points."""
    codes = []
    for subject in representatives:
        if subject and sweep_of(subject) and subject.state not in RUNNING_STATES:
            codes.append(exit_code_of_run(subject.summary, subject.state, is_strict=is_strict))
    return exit_code_of_runs(codes)


def _describe_resume(sweep: Sweep, root: Path, purpose: str) -> str:
    """Return the command that continues a sweep, after its purpose, or why it cannot continue."""
    if any(GONE in word for word in words_for_record(sweep.argv)):
        secret = "the command line contains a secret, which tuilab does not store"
        return f"it cannot be resumed: {secret}"
    return f"{purpose}: {hint(root, 'sweep', '--resume', sweep.id)}"
