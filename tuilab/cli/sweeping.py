"""Goes through the points of a sweep, or follows them, one display for all of them, and tells what came of it."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import msgspec

from tuilab.cli import headless
from tuilab.cli.follow import Outcome, follow_one, print_result, run_each
from tuilab.drawings.glyphs import Style, style_of
from tuilab.engine.messages import RunOrder
from tuilab.errors import ExitCode
from tuilab.record import presence
from tuilab.record.encoding import for_programs
from tuilab.record.events import Sweep
from tuilab.record.states import RUNNING_STATES
from tuilab.reports.sweeps.document import sweep_document
from tuilab.reports.sweeps.points import point_words, varied_settings
from tuilab.reports.sweeps.sweep_summary import runs_of_points, summarise_sweep, sweep_of
from tuilab.reports.sweeps.text import render
from tuilab.reports.write_report import format_of, read_subjects, write
from tuilab.runs import store, sweeps
from tuilab.runs.command_line import hint
from tuilab.runs.entry import RunEntry
from tuilab.scrub import words_for_record
from tuilab.text.display import GONE, plural, show

_LOOK_S = 0.2
_NEXT_S = 3.0  # in which a front begins the next point


def go_through(
    orders: Sequence[RunOrder],
    root: Path,
    outcome: Outcome,
    run_remotely: Callable[[list[RunOrder]], None] | None = None,
) -> ExitCode:
    """Run the points one after another, or all on other machines; the results before an interrupt are printed and kept."""
    orders = _begun_by_us(orders)
    sweep = orders[0].sweep
    assert sweep is not None
    if not outcome.is_quiet:
        print(
            f"{sweep.id}: {plural(len(orders), 'point')}; {_step(sweep, root, 'if it is interrupted, continue')}",
            file=sys.stderr,
        )
    if run_remotely:
        run_remotely([msgspec.structs.replace(order, waits=False) for order in orders])
        return _finish(sweep.id, root, outcome)
    numbers = count(1)

    def tell(order: RunOrder) -> None:
        assert order.sweep is not None
        outcome.where = f"{next(numbers)}/{len(orders)} {point_words(order.sweep.point, varied_settings(sweep))}"

    for _ in run_each(orders, outcome, tell):
        _tell_point(outcome)
    return _finish(sweep.id, root, outcome)


def _begun_by_us(orders: Sequence[RunOrder]) -> list[RunOrder]:
    """Have each run tell who begins the next one: whoever stops the sweep stops that, too."""
    change, me = msgspec.structs.replace, None
    with contextlib.suppress(OSError):  # /proc does not tell: the first point says so
        me = presence.identify(os.getpid())
    return [change(order, sweep=change(order.sweep, front=me)) for order in orders if order.sweep]


def follow(reference: str, root: Path, outcome: Outcome) -> ExitCode:
    """Follow the points of a sweep that go on, one after another, and tell the result of all; an interrupt leaves them."""
    found = sweeps.find(reference, root)
    outcome.is_silent, outcome.left = True, found.sweep.id
    if found.going_on and not outcome.is_quiet:
        print(
            f"{found.sweep.id}: {sweeps.describe_counts(found.counts)}", file=sys.stderr, flush=True
        )
    for entry in _going_on(found):
        outcome.where = point_words(entry.point, varied_settings(found.sweep))
        follow_one(root / entry.run, outcome, is_ours=False)
        if outcome.codes[-1] == ExitCode.INTERRUPTED:
            return ExitCode.INTERRUPTED
        _tell_point(outcome)
    return tell_result(found.sweep.id, root, outcome)


def _going_on(begun: sweeps.Begun) -> Iterator[RunEntry]:
    """Yield the points that go on; where a front begins one behind the other, the next one is waited for a moment."""
    seen, until = set[str](), 0.0
    while True:
        if new := [entry for entry in begun.going_on if entry.run not in seen]:
            seen |= {entry.run for entry in new}
            yield from new
            until = time.monotonic() + _NEXT_S
        elif not begun.counts[sweeps.LEFT] or time.monotonic() > until:
            return
        else:
            time.sleep(_LOOK_S)
        begun = sweeps.find(begun.sweep.id, begun.root)


def _tell_point(outcome: Outcome) -> None:
    style = style_of(sys.stderr)
    if not outcome.is_quiet:
        print(style.fit(_told(outcome, style)), file=sys.stderr, flush=True)


def _told(outcome: Outcome, style: Style) -> str:
    """Return what came of the point that was run last, in a line."""
    if not outcome.watched:
        return f"{outcome.where}: not finished"
    watch, state = outcome.watched[-1]
    marks = "".join(style.mark(claim.outcome) for claim in watch.summary.claims.values())
    name = store.short_id(watch.run_dir.name)
    return f"{outcome.where}: {state}  {marks}  {watch.summary.elapsed_s:.1f} s  {name}"


def _finish(sweep_id: str, root: Path, outcome: Outcome) -> ExitCode:
    code = headless.worst(outcome.codes)
    if not outcome.watched:  # no point could begin, and why was told
        return code
    return tell_result(sweep_id, root, outcome, code)


def tell_result(
    reference: str, root: Path, outcome: Outcome, code: ExitCode | None = None
) -> ExitCode:
    """Print the result of a sweep, and write its report; without a code return that of the runs that speak for its points."""
    begun = sweeps.find(reference, root)
    known = {entry.run: entry for entry in begun.entries}
    subjects = [replace(one, of_sweep=known[one.run_dir.name]) for one in read_subjects(begun.runs)]
    found = summarise_sweep(subjects)
    if code is None:
        over = [
            one
            for one in runs_of_points(found.sweep, subjects)
            if one and sweep_of(one) and one.state not in RUNNING_STATES
        ]
        code = headless.worst(
            [
                headless.exit_code(one.summary, one.state, is_strict=outcome.is_strict)
                for one in over
            ]
        )
    if outcome.as_json:
        print_result(for_programs(sweep_document(found, subjects, code)))
    else:
        style = style_of(sys.stdout)
        print_result(
            style.fit(
                render(
                    found,
                    style,
                    shutil.get_terminal_size((100, 24)).columns,
                    has_chart=outcome.has_chart,
                )
            )
        )
        if found.missing:
            lack, step = (
                plural(len(found.missing), "point"),
                _step(found.sweep, root, "run the missing points"),
            )
            print(f"tuilab: {lack} without a result; {step}", file=sys.stderr)
    if outcome.report:
        write(subjects, outcome.report, format_of(outcome.report))
        if outcome.report != "-" and not outcome.is_quiet:
            print(f"report: {show(outcome.report, 500)}", file=sys.stderr)
    return code


def _step(sweep: Sweep, root: Path, what: str) -> str:
    """Return how to go on with a sweep that has come to an end too early."""
    if any(GONE in word for word in words_for_record(sweep.argv)):
        return (
            "it cannot be resumed: the command line contains a secret, which tuilab does not store"
        )
    return f"{what}: {hint(root, 'sweep', '--resume', sweep.id)}"
