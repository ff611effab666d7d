"""`tuilab stop RUN`: stop a run in order, or end what a lost one left behind."""

import click

from tuilab.cli import completion, options


@click.command(
    help=__doc__,
    params=[
        click.Argument(["run"], shell_complete=completion.going_on),
        click.Option(["--now"], is_flag=True, help="At once: no grace for the scenario to save anything, no verdicts."),
        options.AS_JSON,
        options.ROOT,
    ],
)
def command(run: str, now: bool, as_json: bool, root: str | None) -> None:
    from tuilab.engine import launch
    from tuilab.runs import store

    run_dir = store.find_surely(run, [options.root(root)])
    done = launch.stop(run_dir, at_once=now)
    if as_json:
        options.print_document("tuilab.stop/1", **store.fields(run_dir), done=done)
    else:
        click.echo(done)
