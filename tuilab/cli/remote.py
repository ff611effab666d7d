"""Runs that an engine carries out on other machines, as `run` and `sweep` print them."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuilab.cli.follow import Outcome, print_result
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


def print_boxes(outcome: Outcome) -> None:
    """Print, for each scenario that ran on several machines, which claims hold on which of them."""
    style, width = style_of(sys.stdout), width_here()
    by_scenario: dict[str, list[RunSummary]] = {}
    for watch, _ in outcome.watched:
        if run := watch.summary.run:
            by_scenario.setdefault(run.scenario, []).append(watch.summary)
    for summaries in by_scenario.values():
        found = compare(sorted(summaries, key=box_of))
        if found.boxes:
            print_result(style.fit("\n" + render_boxes(found, style, width)))


def _check_root(root: Path) -> None:
    """Refuse a folder in which nothing can be recorded before a node starts a run for it."""
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as problem:
        raise store.cannot_write(root, problem.strerror or str(problem)) from problem
    if not os.access(root, os.W_OK | os.X_OK):
        raise store.cannot_write(root, "no permission to write there")


def run_remotely(
    engine: Engine, orders: Sequence[RunOrder], given: Mapping[str, Any], outcome: Outcome
) -> None:
    """Have an engine carry out the orders, and keep their results; each is printed when its run has ended."""
    style = style_of(sys.stderr)

    def tell(words: str) -> None:
        if not outcome.is_quiet:
            print(style.fit(words), file=sys.stderr, flush=True)

    def take(done: RemoteEnd) -> None:
        if done.problem:
            outcome.codes.append(ExitCode(done.code or ExitCode.FAILED))
            print(
                style.fit(f"tuilab: {show(done.node, 60)}: {show(done.problem, 500)}"),
                file=sys.stderr,
            )
        if done.run_dir is None:
            return
        try:
            watch = Watch(done.run_dir)
            watch.catch_up()
        except TuilabError as problem:  # its folder was removed
            outcome.codes.append(problem.exit_code)
            print(style.fit(f"tuilab: {problem}"), file=sys.stderr)
            return
        state = watch.state()
        marks = style.tally(claim.outcome for claim in watch.summary.claims.values())
        name = store.short_id(done.run_dir.name)
        tell(f"{show(done.node, 60)}: {name} {state}  {marks}  {watch.summary.elapsed_s:.1f} s")
        if not done.is_tried_again:
            outcome.take(watch, state)
        watch.close()

    for root in {order.root for order in orders}:
        _check_root(Path(root))
    outcome.result = outcome.result or sys.stdout  # kept here: an engine may redirect sys.stdout
    if engine.carry(orders, given, tell, take):
        outcome.codes.append(ExitCode.INTERRUPTED)
