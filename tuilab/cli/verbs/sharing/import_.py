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
    if as_json:
        unpacked = [_fields(unpack.unpack(path, options.root(root))) for path in files]
        options.print_document("tuilab.import/1", runs=unpacked)
        return
    for path in files:
        found = unpack.unpack(path, options.root(root))
        name = store.short_id(found.run_dir.name)
        click.echo(f"{name}  {found.run_dir}  see it: {hint(found.run_dir.parent, 'attach', name)}")
        if (out := taken_out(found.run_dir)) is not None:
            click.echo(
                f"{name}: before it was packed: {describe_packed_redactions(out.places)}", err=True
            )
        if found.damage:
            click.echo(f"{name}: {found.damage}", err=True)
        if found.left_out:
            names = join_first(found.left_out, 5)
            click.echo(
                f"{name}: left out {plural(len(found.left_out), 'file')} that do not belong to a run: {names}",
                err=True,
            )


def _fields(found: unpack.UnpackedRun) -> dict[str, object]:
    out = taken_out(found.run_dir)
    about = {**store.fields(found.run_dir), "damage": found.damage or None}
    return {**about, "left_out": found.left_out, "taken_out": out.places if out else {}}
