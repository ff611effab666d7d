"""`tuilab advise [RUN...] -o box.env`: the settings that follow from what was measured on this box.

Each stands below the claim that supports it, as a comment. Without RUN: of every scenario the newest run that succeeded, with
its defaults where there is one. Only runs of this box count, and only claims that were SUPPORTED; where there are none, the
file sets nothing and says so.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tuilab.cli import options
from tuilab.text import plural, show


@click.command(
    help=__doc__,
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=options.complete_run),
        click.Option(
            ["-o", "--output", "target"], metavar="FILE", default="-", help="Where to; without it, or with -, stdout."
        ),
        options.ROOT,
    ],
)
def command(runs: Sequence[str], target: str, root: str | None) -> None:
    from tuilab.cli.verbs.report import chosen
    from tuilab.reports import advice
    from tuilab.reports.files import write_text

    found, notes = advice.of_runs(chosen(runs or ["all"], options.root(root)))
    for note in notes:
        print(note, file=sys.stderr)
    write_text(target, advice.env_file(found))
    if target != "-":
        what = plural(len(found.settings), "setting") if found.settings else "no setting is supported by what was measured here"
        print(f"{what}: {show(Path(target), 500)}", file=sys.stderr)
