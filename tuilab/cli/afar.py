"""Runs on the nodes of a Ray cluster, as `run` and `sweep` have them."""

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuilab.cli.follow import Outcome, print_result
from tuilab.drawings.glyphs import style_of
from tuilab.engine.messages import RunOrder
from tuilab.errors import ExitCode, TuilabError
from tuilab.fleet.carry import carry
from tuilab.fleet.cluster import Cluster
from tuilab.fleet.wanted import Done, Wanted
from tuilab.record.live_run import Watch
from tuilab.record.summary import RunSummary
from tuilab.reports.compare_text import render_boxes, width_here
from tuilab.runs import store
from tuilab.runs.comparing.comparison import compare
from tuilab.runs.comparing.differences import box_of
from tuilab.text import show


def wanted(given: Mapping[str, Any]) -> Wanted:
    """Return where runs are to happen."""
    return Wanted(given["address"] or "", given["count"] or 0, given["per_node"], given["nnodes"] or 0, given["gpus"])


def print_boxes(outcome: Outcome) -> None:
    """Print, of each scenario that ran on several boxes, which claims hold on which of them."""
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
    """Refuse a folder in which nothing can be recorded before a node begins to run something for it."""
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as problem:
        raise store.cannot_write(root, problem.strerror or str(problem)) from problem
    if not os.access(root, os.W_OK | os.X_OK):
        raise store.cannot_write(root, "no permission to write there")


def run_afar(orders: Sequence[RunOrder], where: Wanted, outcome: Outcome) -> None:
    """Have orders carried out and keep their results, each told when it is over."""
    style = style_of(sys.stderr)

    def tell(words: str) -> None:
        if not outcome.is_quiet:
            print(style.fit(words), file=sys.stderr, flush=True)

    def take(one: Done) -> None:
        if one.problem:
            outcome.codes.append(ExitCode(one.code or ExitCode.FAILED))
            print(style.fit(f"tuilab: {show(one.node, 60)}: {show(one.problem, 500)}"), file=sys.stderr)
        if one.run_dir is None:
            return
        try:
            watch = Watch(one.run_dir)
            watch.catch_up()
        except TuilabError as problem:  # its folder was removed
            outcome.codes.append(problem.exit_code)
            print(style.fit(f"tuilab: {problem}"), file=sys.stderr)
            return
        state = watch.state()
        marks = style.tally(claim.outcome for claim in watch.summary.claims.values())
        name = store.short_id(one.run_dir.name)
        tell(f"{show(one.node, 60)}: {name} {state}  {marks}  {watch.summary.elapsed_s:.1f} s")
        if not one.is_tried_again:
            outcome.take(watch, state)
        watch.close()

    for root in {order.root for order in orders}:
        _check_root(Path(root))
    outcome.result = outcome.result or sys.stdout
    nowhere = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    with nowhere, contextlib.redirect_stdout(nowhere):  # Ray prints there what nodes say
        cluster = Cluster(where.address)
        try:
            is_interrupted = carry(orders, cluster, where, tell, take)
        finally:
            cluster.close()
    if is_interrupted:
        outcome.codes.append(ExitCode.INTERRUPTED)
