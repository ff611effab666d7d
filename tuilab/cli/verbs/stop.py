"""Stop a run cleanly. For a lost run, end the processes it left behind. For a sweep, stop all its
runs.
"""

from typing import TYPE_CHECKING

import click

from tuilab.cli import completion, options
from tuilab.errors import TuilabError

if TYPE_CHECKING:
    from pathlib import Path


@click.command(
    help=__doc__,
    params=[
        click.Argument(["run"], shell_complete=completion.going_on_or_sweeps),
        click.Option(
            ["--now"],
            is_flag=True,
            help="Kill the run immediately: the scenario can save nothing, and no verdicts are reached.",
        ),
        options.AS_JSON,
        options.ROOT,
    ],
)
def command(run: str, now: bool, as_json: bool, root: str | None) -> None:
    from tuilab.engine import launch
    from tuilab.runs import store, sweeps

    if run.startswith(sweeps.PREFIX):
        _stop_sweep(run, options.root(root), at_once=now, as_json=as_json)
        return
    run_dir = store.find_surely(run, [options.root(root)])
    done = launch.stop(run_dir, at_once=now)
    if as_json:
        options.print_document("tuilab.stop/1", **store.fields(run_dir), done=done)
    else:
        click.echo(done)


def _stop_sweep(reference: str, root: "Path", *, at_once: bool, as_json: bool) -> None:
    """Stop who begins the points of a sweep, and those that run or wait, the last first: else the next would begin."""
    from tuilab.engine import launch
    from tuilab.runs import store, sweeps
    from tuilab.text.display import plural

    found = sweeps.find(reference, root)
    front = found.client
    is_ended = front is not None and launch.interrupt(front, found.source)
    done = [
        (root / one.run, _stop(root / one.run, at_once=at_once))
        for one in reversed(found.unfinished)
    ]
    if as_json:
        runs = [{**store.fields(run_dir), "done": words} for run_dir, words in done]
        options.print_document(
            "tuilab.stop-sweep/1", sweep=found.sweep.id, is_ended=is_ended, runs=runs
        )
        return
    told = [f"asked {found.sweep.id} to stop: no further point starts"] if is_ended else []
    told += [words for _, words in done]
    click.echo(
        "\n".join(told)
        or f"{found.sweep.id} has no running points: {sweeps.describe_counts(found.counts)}"
    )
    if done and not is_ended and (left := found.counts[sweeps.NOT_BEGUN]):
        click.echo(
            f"{plural(left, 'point')} not started: if its `tuilab sweep` is still running, stop that with Ctrl-C",
            err=True,
        )


def _stop(run_dir: "Path", *, at_once: bool) -> str:
    """Return what was done to stop a run, or why nothing could be: the others are stopped all the same."""
    from tuilab.engine import launch

    try:
        return launch.stop(run_dir, at_once=at_once)
    except TuilabError as problem:
        return str(problem)
