"""Add a note or a tag to a run; without TEXT, --tag or --untag, print its notes and tags.

Notes do not change the recorded data: they are kept in the folder of the run, and are exported and
deleted with it.
"""

from collections.abc import Sequence

import click

from tuilab.cli import completion, options
from tuilab.errors import UsageError
from tuilab.runs import notes, store
from tuilab.text.display import show


@click.command(
    help=__doc__,
    params=[
        click.Argument(["run"], shell_complete=completion.runs),
        click.Argument(["text"], nargs=-1),
        completion.tag_option("--tag", "Add a tag; may be repeated."),
        completion.tag_option("--untag", "Remove a tag; may be repeated."),
        options.AS_JSON,
        options.ROOTS,
    ],
)
def command(
    run: str,
    text: Sequence[str],
    tags: Sequence[str],
    untags: Sequence[str],
    as_json: bool,
    roots: Sequence[str],
) -> None:
    if text:
        options.refuse_empty("TEXT", " ".join(text))
    for tag in tags:
        if tag in untags:
            raise UsageError(f"--tag and --untag both name {show(tag, 60)}; use only one of them")
    run_dir = store.find_among(run, options.root_paths(roots))
    if text or tags or untags:
        notes.add(run_dir, " ".join(text), tags, untags)
    run_notes = notes.read(run_dir)
    if as_json:
        documents = [{"wall_s": wall_s, "text": note} for wall_s, note in run_notes.texts]
        options.print_document(
            "tuilab.note/1", **store.fields(run_dir), tags=run_notes.tags, notes=documents
        )
        return
    line = store.short_id(run_dir.name)
    if run_notes.tags:
        line += "  " + " ".join(f"#{tag}" for tag in run_notes.tags)
    elif not run_notes.texts:
        line += "  no notes and no tags"
    click.echo(line)
    for wall_s, note in run_notes.texts:
        click.echo(f"  {notes.day(wall_s)}  {note}")
