"""Pack a run into one file; `tuilab import` unpacks it, here or on another machine.

The file has the whole folder of the run: recorded data, source, notes and output, without text that
looks like a secret. Artifacts that the scenario saved are packed unchanged.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from tuilab.cli import completion, options
from tuilab.runs import read_entry, store
from tuilab.runs.archive import pack
from tuilab.runs.archive.names import list_left_out
from tuilab.runs.redaction import describe_redactions
from tuilab.text.display import join_first, plural, show
from tuilab.text.words import size


@click.command(
    help=__doc__,
    params=[
        click.Argument(["run"], default="last", shell_complete=completion.runs),
        click.Option(
            ["-o", "--output"],
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Write to this file, which must not exist yet (default: the full name of the run + .tgz, in this folder).",
        ),
        options.KEEP_PRIVATE,
        options.AS_JSON,
        options.ROOTS,
    ],
)
def command(
    run: str, output: Path | None, keep_private: bool, as_json: bool, roots: Sequence[str]
) -> None:
    run_dir = store.find_among(run, options.roots(roots))
    path = output or Path(f"{run_dir.name}.tgz")
    packed = pack.pack(run_dir, path, keeps_private=keep_private)
    odd = list_left_out(run_dir)
    if as_json:
        about = {
            "run": run_dir.name,
            "file": str(path.absolute()),
            "files": packed.files,
            "bytes": path.stat().st_size,
        }
        options.print_document(
            "tuilab.export/1",
            **about,
            taken_out=dict(packed.secrets.places),
            left_out=[*odd, *packed.unread],
        )
        return
    click.echo(
        f"{show(path)}: {store.short_id(run_dir.name)}, {plural(packed.files, 'file')}, {size(path.stat().st_size)}"
    )
    if packed.secrets.places:
        click.echo(
            f"{describe_redactions(packed.secrets.places)}; --keep-private keeps them", err=True
        )
    for names, why in ((odd, "that cannot be packed"), (packed.unread, "that cannot be read")):
        if names:
            click.echo(
                f"left out {plural(len(names), 'name')} {why}: {join_first([*names], 5)}", err=True
            )
    if read_entry.read_entry(run_dir).is_running:
        click.echo("the run is still running: the archive has the data so far", err=True)
