"""Pack a run into one file; `tuilab import` unpacks it, here or on another machine.

The file has the whole folder of the run: recorded data, source, notes and output, without text that
looks like a secret. Artifacts that the scenario saved are packed unchanged.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from tuilab.catalogue.imports import SOURCE_LIMIT
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
            help="Write to this file, which must not exist yet "
            "(default: the full name of the run + .tgz, in this folder).",
        ),
        options.KEEP_PRIVATE,
        options.AS_JSON,
        options.ROOTS,
    ],
)
def command(
    run: str, output: Path | None, keep_private: bool, as_json: bool, roots: Sequence[str]
) -> None:
    run_dir = store.find_among(run, options.root_paths(roots))
    path = output or Path(f"{run_dir.name}.tgz")
    packed = pack.pack(run_dir, path, keeps_private=keep_private)
    not_packable = list_left_out(run_dir)
    removed_secrets = packed.secrets.places
    packed_bytes = path.stat().st_size
    if as_json:
        options.print_document(
            "tuilab.export/1",
            run=run_dir.name,
            file=str(path.absolute()),
            files=packed.files,
            bytes=packed_bytes,
            taken_out=dict(removed_secrets),
            left_out=[*not_packable, *packed.unread, *packed.too_large],
        )
        return
    files = plural(packed.files, "file")
    click.echo(f"{show(path)}: {store.short_id(run_dir.name)}, {files}, {size(packed_bytes)}")
    if removed_secrets:
        click.echo(f"{describe_redactions(removed_secrets)}; --keep-private keeps them", err=True)
    _print_left_out(not_packable, "that cannot be packed")
    _print_left_out(packed.unread, "that cannot be read")
    _print_left_out(packed.too_large, f"larger than {size(SOURCE_LIMIT)}, the limit of a source")
    if read_entry.read_entry(run_dir).is_running:
        click.echo("the run is still running: the archive has the data so far", err=True)


def _print_left_out(names: Sequence[str], reason: str) -> None:
    if names:
        count = plural(len(names), "name")
        click.echo(f"left out {count} {reason}: {join_first(list(names), 5)}", err=True)
