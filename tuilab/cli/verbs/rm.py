"""Delete finished runs. A running run is never deleted.

tuilab cannot see whether an unfinished run on another machine is still running. If you know that it
is not, add --yes.

With --older-than or --keep instead of RUNS, tuilab deletes all runs that are older than AGE and not
among the newest N. Without --yes it then deletes nothing, and only shows what it would delete.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from tuilab.cli import completion, options
from tuilab.errors import CannotRecord, UsageError
from tuilab.runs import deleting, store
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import Index
from tuilab.runs.run_name import RunName
from tuilab.text.display import plural, show
from tuilab.text.words import size


@click.command(
    help=__doc__,
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=completion.over),
        click.Option(
            ["--older-than"],
            type=options.Age(),
            metavar="AGE",
            help="Delete runs that started longer ago than this: 12h, 30d, 2w.",
        ),
        click.Option(
            ["--keep"],
            type=options.Whole(0),
            metavar="N",
            help="Keep the newest N runs, whatever their age.",
        ),
        click.Option(
            ["--yes"],
            is_flag=True,
            help="Really delete: runs chosen by age or number, or an unfinished run of another machine.",
        ),
        options.AS_JSON,
        options.ROOTS,
    ],
)
def command(
    runs: Sequence[str],
    older_than: float | None,
    keep: int | None,
    yes: bool,
    as_json: bool,
    roots: Sequence[str],
) -> None:
    is_sweep = older_than is not None or keep is not None
    if is_sweep and runs:
        raise UsageError("use either names of runs, or --older-than and --keep; drop one of them")
    if not (is_sweep or runs):
        raise UsageError(
            "no runs chosen; name the runs to delete, or use --older-than AGE or --keep N"
        )
    if is_sweep:
        swept = [_sweep(root, older_than, keep or 0, is_meant=yes) for root in options.roots(roots)]
        if as_json:
            gone = [store.fields(one.root / entry.run) for one in swept for entry in one.gone]
            kept = [why for one in swept for why in (*one.failed, *one.spared)]
            options.print_document("tuilab.rm/1", is_done=yes, runs=gone, kept=kept)
        for one in swept if not as_json else ():
            _tell(one, is_meant=yes)
        if any(one.failed for one in swept):
            raise CannotRecord("some runs could not be deleted; the reasons are above")
        return
    _delete(
        [*dict.fromkeys(store.find_surely(run, options.roots(roots)) for run in runs)],
        is_given_up=yes,
        as_json=as_json,
    )


def _delete(named: Sequence[Path], *, is_given_up: bool, as_json: bool) -> None:
    """Delete runs; where one of them cannot be, those before it are told all the same."""
    gone: list[dict[str, str]] = []
    try:
        for run_dir in named:
            deleting.delete(run_dir, is_given_up=is_given_up)
            gone.append(store.fields(run_dir))
            if not as_json:
                click.echo(f"deleted {run_dir.name}")
    finally:
        if as_json and gone:
            options.print_document("tuilab.rm/1", is_done=True, runs=gone, kept=[])


@dataclass
class _Swept:
    """What became of the runs of an age in one folder: gone, or why not."""

    root: Path
    gone: list[RunEntry] = field(default_factory=list)
    spared: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # that might have been deleted


def _sweep(root: Path, older_than_s: float | None, keep: int, *, is_meant: bool) -> _Swept:
    """Delete the runs of an age, or find out which would be."""
    swept = _Swept(root)
    index = Index(root)
    for run_dir in store.list_runs(root)[keep:]:
        if not _is_old(run_dir.name, older_than_s):
            continue
        entry = index.entry(run_dir.name)
        try:
            if is_meant:
                deleting.delete(run_dir)
            elif why := deleting.why_not(run_dir, entry):
                raise UsageError(why)
        except UsageError as refused:
            swept.spared.append(str(refused))
        except CannotRecord as problem:
            swept.failed.append(str(problem))
        else:
            swept.gone.append(entry)
    return swept


def _tell(swept: _Swept, *, is_meant: bool) -> None:
    gone = swept.gone
    known = [entry.bytes_total for entry in gone if entry.bytes_total is not None]
    disk = f"{'' if len(known) == len(gone) else 'more than '}{size(sum(known))}"
    done = "deleted" if is_meant else "would delete"
    click.echo(
        f"{done} {plural(len(gone), 'run')}, {disk}, in {show(swept.root)}{'' if is_meant else '; add --yes to do it'}"
    )
    _tell_kept([*swept.failed, *swept.spared])


def _tell_kept(reasons: Sequence[str]) -> None:
    for why in reasons[:10]:
        click.echo(f"kept: {why}")
    if len(reasons) > 10:
        click.echo(f"kept {len(reasons) - 10} more")


def _is_old(run: str, older_than_s: float | None) -> bool:
    """Say whether a run is old enough; one whose name does not tell when it started is never."""
    started = RunName(run).started_s
    return started is not None and (older_than_s is None or time.time() - started > older_than_s)
