"""`tuilab rm RUN...`: delete runs that are over."""

import click

from tuilab import store
from tuilab.cli import options
from tuilab.errors import UsageError
from tuilab.watch import Watch


@click.command(
    help=__doc__, params=[click.Argument(["runs"], nargs=-1, required=True, shell_complete=options.complete_run), options.ROOT]
)
def command(runs: tuple[str, ...], root: str | None) -> None:
    folders = [store.find(run, options.root(root)) for run in runs]
    for run_dir in dict.fromkeys(folders):
        watch = Watch(run_dir)
        while watch.refresh():
            pass
        state = watch.state()
        watch.close()
        if not watch.summary.is_over and state != "lost":
            raise UsageError(
                f"{store.short_id(run_dir.name)} is {state}; stop it first: tuilab stop {store.short_id(run_dir.name)}"
            )
        store.remove(run_dir)
        click.echo(f"deleted {run_dir.name}")
