"""`tuilab export RUN`: pack a run into one file, for another box or for keeps; `tuilab import` unpacks it.

It holds all of the run's folder: the record, the source, the artifacts, the notes, and all that was printed. The record has no
secrets of the environment or of parameters, but a scenario may have printed some.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from tuilab.cli import options
from tuilab.runs import archive, ledger, store
from tuilab.text import plural, show
from tuilab.words import size


@click.command(
    help=__doc__,
    params=[
        click.Argument(["run"], default="last", shell_complete=options.complete_run),
        click.Option(
            ["-o", "--output"],
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="The file to write, one that is not there yet (else NAME.tgz here).",
        ),
        options.ROOTS,
    ],
)
def command(run: str, output: Path | None, roots: Sequence[str]) -> None:
    run_dir = store.find_among(run, options.roots(roots))
    path = output or Path(f"{run_dir.name}.tgz")
    count = archive.pack(run_dir, path)
    click.echo(f"{show(path)}: {store.short_id(run_dir.name)}, {plural(count, 'file')}, {size(path.stat().st_size)}")
    if names := archive.left_out(run_dir):
        told = ", ".join(show(name, 60) for name in names[:5])
        click.echo(f"left out {plural(len(names), 'name')} that no archive takes: {told}", err=True)
    if ledger.read(run_dir).is_running:
        click.echo("the run goes on: the archive has what was written so far", err=True)
