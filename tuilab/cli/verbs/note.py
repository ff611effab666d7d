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
    if twice := next((tag for tag in tags if tag in untags), ""):
        raise UsageError(f"--tag and --untag both name {show(twice, 60)}; use only one of them")
    run_dir = store.find_among(run, options.roots(roots))
    if text or tags or untags:
        notes.add(run_dir, " ".join(text), tags, untags)
    found = notes.read(run_dir)
    if as_json:
        told = [{"wall_s": when, "text": words} for when, words in found.texts]
        options.print_document(
            "tuilab.note/1", **store.fields(run_dir), tags=found.tags, notes=told
        )
        return
    tagged = f"  {' '.join('#' + tag for tag in found.tags)}" if found.tags else ""
    if not found.tags and not found.texts:
        tagged = "  no notes and no tags"
    click.echo(f"{store.short_id(run_dir.name)}{tagged}")
    for when, words in found.texts:
        click.echo(f"  {notes.day(when)}  {words}")
