"""`tuilab advise [RUN...] -o box.env`: the settings that follow from what was measured on this box.

A setting follows where values of a variable raced here, and one won against all others, the default among them. The file is
sourced (sh, bash, zsh) before one program that has the box to itself; with --ranks before torchrun. It sets nothing on another
box, or once cores, processor, torch, or for a GPU its model or driver have changed. Without RUN: of every scenario that races
settings the newest run that counts. What does not count, what is left as it is and what never raced here stands in comments.
"""

import json
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuilab.catalogue.scenario import Scenario
from tuilab.cli import options
from tuilab.text import plural, show

if TYPE_CHECKING:
    from tuilab.runs.ledger import Entry

_LOOKED_AT = 2000  # runs of a folder, the newest
_READ = 3  # of a scenario


@click.command(
    help=__doc__,
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=options.complete_run),
        click.Option(
            ["-o", "--output", "target"], metavar="FILE", default="-", help="Where to; without it, or with -, stdout."
        ),
        click.Option(
            ["--ranks"], type=click.IntRange(1, 4096), default=None,
            help="For each of so many ranks that torchrun starts on this box (its --nproc-per-node), instead of one program.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="As one JSON document."),
        *options.FOLDERS,
    ],
)  # fmt: skip
def command(
    runs: Sequence[str], target: str, ranks: int | None, as_json: bool, scenarios: Sequence[str], root: str | None
) -> None:
    from tuilab.catalogue import catalog
    from tuilab.cli.verbs.report import chosen
    from tuilab.probes.same_box import box_facts
    from tuilab.record import presence
    from tuilab.record.imported import is_imported
    from tuilab.reports.advice.advice_document import advice_document
    from tuilab.reports.advice.advised import advise
    from tuilab.reports.advice.env_file import env_file
    from tuilab.reports.files import read_subjects, write_text

    known = catalog.load(scenarios)
    under = options.root(root)
    folders = chosen(runs, under) if runs else _racing(under, known, ranks or 0)
    own = [folder for folder in folders if not is_imported(folder)]
    if len(own) < len(folders):
        print(
            f"left out {plural(len(folders) - len(own), 'run')} from archives: nothing here follows from them", file=sys.stderr
        )
    subjects = read_subjects(own)
    starts = [subject.summary.run for subject in subjects if subject.summary.run]
    hosts = {presence.host_name(), *(run.supervisor.host for run in starts if presence.is_of_this_box(run.supervisor))}
    found = advise(subjects, box_facts(), hosts, ranks=ranks or 0, known=known)
    write_text(target, f"{json.dumps(advice_document(found), indent=2)}\n" if as_json else env_file(found))
    if target != "-":
        what = plural(len(found.settings), "setting") if found.settings else "no setting follows from what was measured here"
        print(f"{what}: {show(Path(target), 500)}", file=sys.stderr)


def _racing(root: Path, known: Sequence[Scenario], ranks: int) -> list[Path]:
    """Return the runs that may say which values won: of each scenario the newest that seem to count, or else the newest."""
    from tuilab.reports.advice.advised import raced_by
    from tuilab.runs.ledger_cache import LedgerCache
    from tuilab.runs.run_name import RunName
    from tuilab.runs.store import list_runs

    cache, runs = LedgerCache(root), list_runs(root)[:_LOOKED_AT]
    found = []
    for scenario in (one for one in known if raced_by(one, ranks)):
        folders = [folder for folder in runs if RunName(folder.name).scenario == scenario.id]
        likely = (folder for folder in folders if _seems_to_count(cache.entry(folder), scenario, ranks))
        found += list(islice(likely, _READ)) or folders[:1]
    cache.keep()
    return found


def _seems_to_count(entry: "Entry", scenario: Scenario, ranks: int) -> bool:
    """Say whether a run succeeded, was whole and asked for nothing but a GPU, and for as many ranks as are asked about."""
    from tuilab.record.states import RunState

    raced_for = next((param.default for param in scenario.params if param.name == "ranks"), ranks)
    asked = {"ranks": raced_for, **entry.changed}
    is_plain = asked.keys() <= {"ranks", "device"} and asked["ranks"] == ranks
    return is_plain and entry.state == RunState.SUCCEEDED and not entry.quick
