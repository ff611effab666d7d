"""Write the environment settings that were fastest on this machine.

\b
    tuilab advise -o box.env    # then, before your program: source box.env

A setting is recommended if the values of a variable were compared here, and one value beat all
others, the default included. Source the file (sh, bash, zsh) before one program that has the
machine to itself; with --ranks, before torchrun. A comment in the file names the machine that was
measured; on another host the file sets nothing.

RUNS are the runs to use (default: for each scenario that compares settings, its newest valid run).
Comments in the file list what was not used, what is left unchanged, and what was never compared
here.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tuilab.cli import completion, options
from tuilab.record.encoding import for_programs
from tuilab.text.display import plural, show


@click.command(
    help=__doc__,
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=completion.runs_or_all),
        click.Option(
            ["-o", "--output", "target"],
            metavar="FILE",
            default="-",
            help="Write to FILE; - is stdout (default: stdout).",
            shell_complete=completion.files,
        ),
        click.Option(
            ["--ranks"],
            type=options.WholeNumber(1, 4096),
            default=None,
            metavar="N",
            help="Advise for N ranks on this machine, as `torchrun --nproc-per-node N` starts them "
            "(default: for one program).",
        ),
        options.AS_JSON,
        *options.FOLDERS,
    ],
)
def command(
    runs: Sequence[str],
    target: str,
    ranks: int | None,
    as_json: bool,
    scenarios: Sequence[str],
    root: str | None,
) -> None:
    from tuilab.catalogue import catalog
    from tuilab.cli.verbs.report import find_runs
    from tuilab.reports.advice import gather
    from tuilab.reports.advice.advice_document import advice_document
    from tuilab.reports.advice.env_file import env_file
    from tuilab.reports.write_report import write_text

    listed = catalog.load(scenarios)
    folder = options.root_path(root)
    if runs:
        run_dirs = find_runs(runs, folder)
    else:
        run_dirs = gather.find_racing_runs(folder, listed, ranks or 0)
    advice, notes = gather.advise_from_runs(run_dirs, listed, ranks or 0)
    for note in notes:
        print(f"tuilab: {note}", file=sys.stderr)
    if as_json:
        write_text(target, f"{for_programs(advice_document(advice))}\n")
    else:
        write_text(target, env_file(advice))
    if target != "-":
        content = "no setting is recommended"
        if advice.settings:
            content = plural(len(advice.settings), "setting")
        print(f"{content}: {show(Path(target), 500)}", file=sys.stderr)
