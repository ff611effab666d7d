"""Delete a run, and decide whether it may be deleted, for the command line and the screens."""

from pathlib import Path

from tuilab.errors import UsageError
from tuilab.record import live_run, presence
from tuilab.record.origin.imported import is_imported
from tuilab.record.states import RunState
from tuilab.runs import queue, read_entry, remote_runs, store
from tuilab.runs.command_line import hint
from tuilab.runs.entry import RunEntry
from tuilab.text.display import show


def why_not(run_dir: Path, entry: RunEntry, *, is_given_up: bool = False) -> str:
    """Return why a run must not be deleted; empty if it may be deleted.

    `is_given_up`: the user says that a run whose processes cannot be seen from here has ended. Such
    a run must not be deleted while something is written to it.
    """
    if entry.state == RunState.UNREADABLE:
        return _describe_uncertain(entry.run, show(entry.reason))
    if entry.state == RunState.LOST:
        return "" if is_imported(run_dir) else _why_not_lost(run_dir)
    if not entry.is_over:  # not a list of states: a newer tuilab may have more
        return _why_not_yet(run_dir, entry, is_given_up)
    return ""


def delete(run_dir: Path, *, is_given_up: bool = False) -> None:
    """Delete a run and its ticket; UsageError if the run, as it is now, must not be deleted.

    Raise CannotRecord if the disk refuses; the run can then be deleted later.
    """
    if why := why_not(run_dir, read_entry.read_entry(run_dir), is_given_up=is_given_up):
        raise UsageError(why)
    store.remove(run_dir)
    queue.leave(run_dir.parent, run_dir.name)  # a run that was lost while queued has a ticket


def _describe_uncertain(run: str, problem: str | None) -> str:
    return (
        f"{show(store.short_id(run))} was not deleted, "
        f"because tuilab cannot tell whether it is still running: {problem}"
    )


def _why_not_lost(run_dir: Path) -> str:
    """Return why a lost run must not be deleted: it may have left processes behind; else empty."""
    name = show(store.short_id(run_dir.name))
    step = _stop_hint(run_dir)
    try:
        has_processes = bool(presence.marked(run_dir.name))
    except OSError as problem:
        return (
            f"{name} is lost, and tuilab cannot tell whether it left processes behind: "
            f"{problem.strerror}; try {step}"
        )
    if has_processes:
        return (
            f"{name} is lost, and some of its processes are still running; end them first: {step}"
        )
    return ""


def _why_not_yet(run_dir: Path, entry: RunEntry, is_given_up: bool) -> str:
    """Return why a run without an end must not be deleted; empty if it was given up."""
    try:
        summary, _ = read_entry.read_summary(run_dir)
        if summary.run is None or live_run.presence(run_dir, summary) != "elsewhere":
            name = show(store.short_id(entry.run))
            return f"{name} is {entry.state}; stop it first: {_stop_hint(run_dir)}"
        if is_given_up and remote_runs.is_silent(run_dir):
            return ""
        return remote_runs.describe_elsewhere(run_dir, summary.run.supervisor)
    except OSError as problem:
        return _describe_uncertain(entry.run, problem.strerror)


def _stop_hint(run_dir: Path) -> str:
    return hint(run_dir.parent, "stop", store.short_id(run_dir.name))
