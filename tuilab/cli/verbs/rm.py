"""`tuilab rm RUN...`: delete runs that are over; one that goes on is never deleted.

Whether a run without an end goes on on another box cannot be seen from here: if you know that it does not, add --yes.

With --older-than or --keep instead of names: all runs of that age, but for the newest ones. Then nothing is deleted without
--yes: it only says what would be.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import click

from tuilab.cli import options
from tuilab.errors import UsageError
from tuilab.runs import deleting, store
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.run_name import RunName
from tuilab.text import plural, show
from tuilab.words import size


@click.command(
    help=__doc__,
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=options.complete_run),
        click.Option(["--older-than"], type=options.Age(), metavar="AGE", help="Runs that started longer ago: 12h, 30d, 2w."),
        click.Option(["--keep"], type=click.IntRange(0), metavar="N", help="Keep the newest N, whatever their age."),
        click.Option(["--yes"], is_flag=True, help="Do delete them: those of that age, or one of another box."),
        options.ROOTS,
    ],
)
def command(runs: Sequence[str], older_than: float | None, keep: int | None, yes: bool, roots: Sequence[str]) -> None:
    is_sweep = older_than is not None or keep is not None
    if is_sweep == bool(runs):
        raise UsageError("name the runs to delete, or say --older-than AGE or --keep N; tuilab rm --help tells more")
    if is_sweep:
        for root in options.roots(roots):
            _sweep(root, older_than, keep or 0, is_meant=yes)
        return
    for run_dir in dict.fromkeys(store.find_surely(run, options.roots(roots)) for run in runs):
        deleting.delete(run_dir, is_given_up=yes)
        click.echo(f"deleted {run_dir.name}")


def _sweep(root: Path, older_than_s: float | None, keep: int, *, is_meant: bool) -> None:
    """Delete the runs of an age, or say which would be."""
    chosen = [run_dir for run_dir in store.list_runs(root)[keep:] if _is_old(run_dir.name, older_than_s)]
    freed = deleted = 0
    is_all = True  # whether the size of each is known
    spared: list[str] = []
    cache = LedgerCache(root)
    for run_dir in chosen:
        entry = cache.entry(run_dir)
        if why := _delete(run_dir) if is_meant else deleting.why_not(run_dir, entry):
            spared.append(why)
            continue
        freed += entry.bytes_total or 0
        is_all = is_all and entry.bytes_total is not None
        deleted += 1
    done = "deleted" if is_meant else "would delete"
    disk = f"{'' if is_all else 'more than '}{size(freed)}"
    click.echo(f"{done} {plural(deleted, 'run')}, {disk}, in {show(root)}{'' if is_meant else '; add --yes to do it'}")
    for why in spared[:10]:
        click.echo(f"kept: {why}")
    if len(spared) > 10:
        click.echo(f"kept {len(spared) - 10} more")


def _delete(run_dir: Path) -> str:
    """Delete a run, or return why it must not be."""
    try:
        deleting.delete(run_dir)
    except UsageError as refused:
        return str(refused)
    return ""


def _is_old(run: str, older_than_s: float | None) -> bool:
    """Say whether a run is old enough; one whose name does not tell when it started is never."""
    started = RunName(run).started_s
    return started is not None and (older_than_s is None or time.time() - started > older_than_s)
