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

_MOST_REASONS = 10  # that are printed


@click.command(
    help=__doc__,
    params=[
        click.Argument(["runs"], nargs=-1, shell_complete=completion.finished_runs),
        click.Option(
            ["--older-than"],
            type=options.Age(),
            metavar="AGE",
            help="Delete runs that started longer ago than this: 12h, 30d, 2w.",
        ),
        click.Option(
            ["--keep"],
            type=options.WholeNumber(0),
            metavar="N",
            help="Keep the newest N runs, whatever their age.",
        ),
        click.Option(
            ["--yes"],
            is_flag=True,
            help="Really delete: runs chosen by age or number, or an unfinished run of another "
            "machine.",
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
    is_by_age = older_than is not None or keep is not None
    if is_by_age and runs:
        raise UsageError("use either names of runs, or --older-than and --keep; drop one of them")
    if not is_by_age and not runs:
        raise UsageError(
            "no runs chosen; name the runs to delete, or use --older-than AGE or --keep N"
        )
    folders = options.root_paths(roots)
    if is_by_age:
        _delete_old(folders, older_than, keep or 0, is_confirmed=yes, as_json=as_json)
        return
    run_dirs = list(dict.fromkeys(store.find_surely(run, folders) for run in runs))
    _delete_named(run_dirs, is_confirmed=yes, as_json=as_json)


def _delete_named(run_dirs: Sequence[Path], *, is_confirmed: bool, as_json: bool) -> None:
    """Delete runs and print their names.

    If one of them cannot be deleted, the names of those before it are printed all the same.
    """
    deleted: list[dict[str, str]] = []
    try:
        for run_dir in run_dirs:
            deleting.delete(run_dir, is_given_up=is_confirmed)
            deleted.append(store.fields(run_dir))
            if not as_json:
                click.echo(f"deleted {run_dir.name}")
    finally:
        if as_json and deleted:
            options.print_document("tuilab.rm/1", is_done=True, runs=deleted, kept=[])


# ---- runs chosen by age or number


@dataclass
class _DeletionResult:
    """The old runs of one folder: those that are deleted, and why the others are not."""

    root: Path
    deleted: list[RunEntry] = field(default_factory=list)  # or would be, without --yes
    spared: list[str] = field(default_factory=list)  # reasons for runs that must not be deleted
    failed: list[str] = field(default_factory=list)  # reasons for runs that could not be deleted


def _delete_old(
    roots: Sequence[Path],
    older_than_s: float | None,
    keep: int,
    *,
    is_confirmed: bool,
    as_json: bool,
) -> None:
    """Delete the old runs of some folders, or find out which would be deleted; print which.

    Raises CannotRecord at the end if some runs could not be deleted: the others are deleted by
    then.
    """
    results = [
        _delete_old_in(root, older_than_s, keep, is_confirmed=is_confirmed) for root in roots
    ]
    if as_json:
        deleted = []
        reasons = []
        for result in results:
            deleted += [store.fields(result.root / entry.run) for entry in result.deleted]
            reasons += result.failed + result.spared
        options.print_document("tuilab.rm/1", is_done=is_confirmed, runs=deleted, kept=reasons)
    else:
        for result in results:
            _print_deletion(result, is_confirmed=is_confirmed)
    if any(result.failed for result in results):
        raise CannotRecord("some runs could not be deleted; the reasons are above")


def _delete_old_in(
    root: Path, older_than_s: float | None, keep: int, *, is_confirmed: bool
) -> _DeletionResult:
    """Delete the old runs of a folder, except the newest `keep`.

    Without confirmation, only find out which would be deleted. A run that must not or could not be
    deleted does not stop the others.
    """
    result = _DeletionResult(root)
    index = Index(root)
    for run_dir in store.list_runs(root)[keep:]:
        if not _is_old(run_dir.name, older_than_s):
            continue
        entry = index.entry(run_dir.name)
        try:
            if is_confirmed:
                deleting.delete(run_dir)
            elif reason := deleting.why_not(run_dir, entry):
                raise UsageError(reason)
        except UsageError as refusal:
            result.spared.append(str(refusal))
        except CannotRecord as problem:
            result.failed.append(str(problem))
        else:
            result.deleted.append(entry)
    return result


def _is_old(run: str, older_than_s: float | None) -> bool:
    """Return whether a run is old enough; False if its name does not say when it started."""
    started_s = RunName(run).started_s
    if started_s is None:
        return False
    return older_than_s is None or time.time() - started_s > older_than_s


def _print_deletion(result: _DeletionResult, *, is_confirmed: bool) -> None:
    """Print how many runs of a folder are or would be deleted, and why others are kept."""
    sizes = [entry.bytes_total for entry in result.deleted if entry.bytes_total is not None]
    at_least = "" if len(sizes) == len(result.deleted) else "more than "
    runs = f"{plural(len(result.deleted), 'run')}, {at_least}{size(sum(sizes))}"
    if is_confirmed:
        click.echo(f"deleted {runs}, in {show(result.root)}")
    else:
        click.echo(f"would delete {runs}, in {show(result.root)}; add --yes to do it")
    reasons = result.failed + result.spared
    for reason in reasons[:_MOST_REASONS]:
        click.echo(f"kept: {reason}")
    if len(reasons) > _MOST_REASONS:
        click.echo(f"kept {len(reasons) - _MOST_REASONS} more")
