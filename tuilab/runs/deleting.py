"""Deleting a run: the one rule about which may go, for the command line and the screens alike."""

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
    """Return why a run must not be deleted; nothing when it may.

    One that cannot be seen from here may be given up by who knows that it is over; while it is written to, it is not.
    """
    name = show(store.short_id(entry.run))
    if entry.state == RunState.UNREADABLE:
        return f"{name} was not deleted, because tuilab cannot tell whether it is still running: {show(entry.reason)}"
    if entry.state == RunState.LOST:
        return "" if is_imported(run_dir) else _why_not_while_some_are_left(run_dir)
    if not entry.is_over:  # in whatever state: a newer tuilab may know others
        return _why_not_yet(run_dir, entry, is_given_up)
    return ""


def delete(run_dir: Path, *, is_given_up: bool = False) -> None:
    """Delete a run, unless it must not be, as it is now."""
    if why := why_not(run_dir, read_entry.read_entry(run_dir), is_given_up=is_given_up):
        raise UsageError(why)
    store.remove(run_dir)
    queue.leave(run_dir.parent, run_dir.name)  # one that was lost there has a ticket still


def _why_not_while_some_are_left(run_dir: Path) -> str:
    name, step = show(store.short_id(run_dir.name)), _stop(run_dir)
    try:
        is_any_left = bool(presence.marked(run_dir.name))
    except OSError as problem:
        return f"{name} is lost, and tuilab cannot tell whether it left processes behind: {problem.strerror}; try {step}"
    return (
        f"{name} is lost, and some of its processes are still running; end them first: {step}"
        if is_any_left
        else ""
    )


def _why_not_yet(run_dir: Path, entry: RunEntry, is_given_up: bool) -> str:
    """Return why a run that has no end must not be deleted."""
    name = show(store.short_id(entry.run))
    try:
        summary, _ = read_entry.read_summary(run_dir)
        if summary.run is None or live_run.presence(run_dir, summary) != "elsewhere":
            return f"{name} is {entry.state}; stop it first: {_stop(run_dir)}"
        if is_given_up and remote_runs.is_silent(run_dir):
            return ""
        return remote_runs.describe_elsewhere(run_dir, summary.run.supervisor)
    except OSError as problem:
        return f"{name} was not deleted, because tuilab cannot tell whether it is still running: {problem.strerror}"


def _stop(run_dir: Path) -> str:
    return hint(run_dir.parent, "stop", store.short_id(run_dir.name))
