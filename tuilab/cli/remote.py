"""Run orders on other machines through an engine, and print the results."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuilab.cli.follow import ResultPrinter, print_progress, print_result
from tuilab.drawings.glyphs import style_of
from tuilab.engine.engines import Engine, RemoteEnd
from tuilab.engine.messages import RunOrder
from tuilab.errors import ExitCode, TuilabError
from tuilab.record.live_run import Watch
from tuilab.record.summary import RunSummary
from tuilab.reports.compare_text import render_boxes, width_here
from tuilab.runs import store
from tuilab.runs.comparing.comparison import compare
from tuilab.runs.comparing.differences import box_of
from tuilab.text.display import show


def run_remotely(
    engine: Engine,
    orders: Sequence[RunOrder],
    arguments: Mapping[str, Any],
    printer: ResultPrinter,
) -> None:
    """Run the orders on an engine and keep their results; print each when its run has ended.

    Raises CannotRecord before anything runs if a folder of runs cannot be written to. After Ctrl-C,
    the code INTERRUPTED is added.
    """
    style = style_of(sys.stderr)

    def print_engine_progress(line: str) -> None:
        if not printer.is_quiet:
            print_progress(style.fit(line))

    def add_result(end: RemoteEnd) -> None:
        """Keep the result of a run that has ended elsewhere, and print a line about it.

        A run that another node repeats is not kept. A problem is printed, and its exit code is
        kept.
        """
        if end.problem:
            printer.codes.append(ExitCode(end.code or ExitCode.FAILED))
            problem_line = f"tuilab: {show(end.node, 60)}: {show(end.problem, 500)}"
            print_progress(style.fit(problem_line))
        if end.run_dir is None:
            return
        try:
            watch = Watch(end.run_dir)
            watch.catch_up()
        except TuilabError as problem:  # the folder of the run was removed
            printer.codes.append(problem.exit_code)
            print_progress(style.fit(f"tuilab: {problem}"))
            return
        state = watch.state()
        marks = style.tally(claim.outcome for claim in watch.summary.claims.values())
        run_id = store.short_id(end.run_dir.name)
        result = f"{run_id} {state}  {marks}  {watch.summary.elapsed_s:.1f} s"
        print_engine_progress(f"{show(end.node, 60)}: {result}")
        if not end.is_tried_again:
            printer.add(watch, state)
        watch.close()

    for root in {order.root for order in orders}:
        _check_root(Path(root))
    printer.stream = printer.stream or sys.stdout  # kept here: an engine may redirect sys.stdout
    if engine.carry(orders, arguments, print_engine_progress, add_result):
        printer.codes.append(ExitCode.INTERRUPTED)


def _check_root(root: Path) -> None:
    """Raise CannotRecord if nothing can be recorded in a folder, before a node starts a run for it.

    The folder is made if it does not exist.
    """
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as problem:
        raise store.cannot_write(root, problem.strerror or str(problem)) from problem
    if not os.access(root, os.W_OK | os.X_OK):
        raise store.cannot_write(root, "no permission to write there")


def print_boxes(printer: ResultPrinter) -> None:
    """Print, for each scenario that ran on several machines, which claims hold on which of them."""
    style = style_of(sys.stdout)
    width = width_here()
    by_scenario: dict[str, list[RunSummary]] = {}
    for watch, _ in printer.finished:
        if run := watch.summary.run:
            by_scenario.setdefault(run.scenario, []).append(watch.summary)
    for summaries in by_scenario.values():
        comparison = compare(sorted(summaries, key=box_of))
        if comparison.boxes:
            print_result(style.fit("\n" + render_boxes(comparison, style, width)))
