"""Unpack runs that `tuilab export` packed, here or on another machine.

Archives are not trusted: names, links, sizes and modes are checked, and nothing from an archive is
ever executed.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from tuilab.cli import options
from tuilab.record.origin.taken_out import taken_out
from tuilab.runs import store
from tuilab.runs.archive import unpack
from tuilab.runs.command_line import hint
from tuilab.runs.redaction import describe_packed_redactions
from tuilab.text.display import join_first, plural


@click.command(
    name="import",
    help=__doc__,
    params=[
        click.Argument(
            ["files"],
            nargs=-1,
            required=True,
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
        ),
        options.AS_JSON,
        options.ROOT,
    ],
)
def command(files: Sequence[Path], as_json: bool, root: str | None) -> None:
    folder = options.root_path(root)
    if as_json:
        documents = [_describe(unpack.unpack(path, folder)) for path in files]
        options.print_document("tuilab.import/1", runs=documents)
        return
    for path in files:
        _print_unpacked(unpack.unpack(path, folder))


def _print_unpacked(unpacked: unpack.UnpackedRun) -> None:
    """Print where an imported run is; on stderr, what was removed, damaged or left out."""
    run_dir = unpacked.run_dir
    run_id = store.short_id(run_dir.name)
    click.echo(f"{run_id}  {run_dir}  see it: {hint(run_dir.parent, 'attach', run_id)}")
    removed = taken_out(run_dir)
    if removed is not None:
        removal = describe_packed_redactions(removed.places)
        click.echo(f"{run_id}: before it was packed: {removal}", err=True)
    if unpacked.damage:
        click.echo(f"{run_id}: {unpacked.damage}", err=True)
    if unpacked.left_out:
        count = plural(len(unpacked.left_out), "file")
        names = join_first(unpacked.left_out, 5)
        click.echo(
            f"{run_id}: left out {count} that do not belong to a run: {names}",
            err=True,
        )


def _describe(unpacked: unpack.UnpackedRun) -> dict[str, object]:
    """Return an imported run for `--json`."""
    removed = taken_out(unpacked.run_dir)
    return {
        **store.fields(unpacked.run_dir),
        "damage": unpacked.damage or None,
        "left_out": unpacked.left_out,
        "taken_out": removed.places if removed else {},
    }
