"""`tuilab stop RUN`: stop a run in order, or end what a lost one left behind."""

import click

from tuilab.cli import options
from tuilab.engine import launch
from tuilab.runs import store


@click.command(
    help=__doc__,
    params=[
        click.Argument(["run"], shell_complete=options.complete_run),
        click.Option(["--now"], is_flag=True, help="At once: no grace for the scenario to save anything, no verdicts."),
        options.ROOT,
    ],
)
def command(run: str, now: bool, root: str | None) -> None:
    click.echo(launch.stop(store.find_surely(run, [options.root(root)]), at_once=now))
