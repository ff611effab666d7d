"""`tuilab advise [RUN...] -o box.env`: the settings that follow from what was measured on this box.

A setting follows where values of a variable raced here, and one won against all others, the default among them. The file is
sourced (sh, bash, zsh) before one program that has the box to itself; with --ranks before torchrun. It sets nothing on another
box, or once cores, processor, torch, or for a GPU its model or driver have changed. Without RUN: of every scenario that races
settings the newest run that counts. What does not count, what is left as it is and what never raced here stands in comments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuilab.cli import completion, options
from tuilab.record.encoding import for_programs
from tuilab.text import plural, show

if TYPE_CHECKING:
    pass


@click.command(
    help=__doc__,
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=completion.runs_and_all),
        click.Option(
            ["-o", "--output", "target"], metavar="FILE", default="-", help="Where to; without it, or with -, stdout.",
            shell_complete=completion.files,
        ),
        click.Option(
            ["--ranks"], type=click.IntRange(1, 4096), default=None,
            help="For each of so many ranks that torchrun starts on this box (its --nproc-per-node), instead of one program.",
        ),
        options.AS_JSON,
        *options.FOLDERS,
    ],
)  # fmt: skip
def command(
    runs: Sequence[str], target: str, ranks: int | None, as_json: bool, scenarios: Sequence[str], root: str | None
) -> None:
    from tuilab.catalogue import catalog
    from tuilab.cli.verbs.report import chosen
    from tuilab.reports.advice import gather
    from tuilab.reports.advice.advice_document import advice_document
    from tuilab.reports.advice.env_file import env_file
    from tuilab.reports.files import write_text

    known, under = catalog.load(scenarios), options.root(root)
    folders = chosen(runs, under) if runs else gather.racing(under, known, ranks or 0)
    found, notes = gather.of_runs(folders, known, ranks or 0)
    for note in notes:
        print(f"tuilab: {note}", file=sys.stderr)
    write_text(target, f"{for_programs(advice_document(found))}\n" if as_json else env_file(found))
    if target != "-":
        what = plural(len(found.settings), "setting") if found.settings else "no setting follows from what was measured here"
        print(f"{what}: {show(Path(target), 500)}", file=sys.stderr)
