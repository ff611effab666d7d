"""Stop a run cleanly. For a lost run, end the processes it left behind. For a sweep, stop all its
runs.
"""

from typing import TYPE_CHECKING

import click

from tuilab.cli import completion, options
from tuilab.errors import TuilabError

if TYPE_CHECKING:
    from pathlib import Path

    from tuilab.runs.sweeps import RecordedSweep


@click.command(
    help=__doc__,
    params=[
        click.Argument(["run"], shell_complete=completion.unfinished_runs_or_sweeps),
        click.Option(
            ["--now"],
            is_flag=True,
            help="Kill the run immediately: the scenario can save nothing, "
            "and no verdicts are reached.",
        ),
        options.AS_JSON,
        options.ROOT,
    ],
)
def command(run: str, now: bool, as_json: bool, root: str | None) -> None:
    from tuilab.engine import launch
    from tuilab.runs import store, sweeps

    folder = options.root_path(root)
    if run.startswith(sweeps.PREFIX):
        _stop_sweep(run, folder, at_once=now, as_json=as_json)
        return
    run_dir = store.find_surely(run, [folder])
    action = launch.stop(run_dir, at_once=now)
    if as_json:
        options.print_document("tuilab.stop/1", **store.fields(run_dir), done=action)
    else:
        click.echo(action)


def _stop_sweep(reference: str, root: "Path", *, at_once: bool, as_json: bool) -> None:
    """Stop the process that starts the points of a sweep, then the running and queued points.

    The newest point is stopped first. Otherwise the end of a point would start the next one. A
    point that cannot be stopped does not stop the others. What was done is printed.
    """
    from tuilab.engine import launch
    from tuilab.runs import store, sweeps

    begun = sweeps.find(reference, root)
    front = begun.client
    is_front_asked = front is not None and launch.interrupt(front, begun.source)
    actions = {}
    for entry in reversed(begun.unfinished):
        run_dir = root / entry.run
        actions[run_dir] = _stop_point(run_dir, at_once=at_once)
    if as_json:
        runs = [{**store.fields(run_dir), "done": action} for run_dir, action in actions.items()]
        options.print_document(
            "tuilab.stop-sweep/1", sweep=begun.sweep.id, is_ended=is_front_asked, runs=runs
        )
        return
    _print_actions(begun, list(actions.values()), is_front_asked=is_front_asked)


def _stop_point(run_dir: "Path", *, at_once: bool) -> str:
    """Return what was done to stop a run, or why that failed: the other points are stopped too."""
    from tuilab.engine import launch

    try:
        return launch.stop(run_dir, at_once=at_once)
    except TuilabError as problem:
        return str(problem)


def _print_actions(begun: "RecordedSweep", actions: list[str], *, is_front_asked: bool) -> None:
    """Print what was done to stop a sweep, and whether more of its points may start."""
    from tuilab.runs import sweeps
    from tuilab.text.display import plural

    sweep_id = begun.sweep.id
    lines = []
    if is_front_asked:
        lines.append(f"asked {sweep_id} to stop: no further point starts")
    lines += actions
    if not lines:
        counts = sweeps.describe_counts(begun.counts)
        lines.append(f"{sweep_id} has no running points: {counts}")
    click.echo("\n".join(lines))
    not_started = begun.counts[sweeps.NOT_BEGUN]
    if actions and not is_front_asked and not_started:
        click.echo(
            f"{plural(not_started, 'point')} not started: if its `tuilab sweep` is still running, "
            "stop that with Ctrl-C",
            err=True,
        )
