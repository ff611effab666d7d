"""Deleting a run: the one rule about which may go, for the command line and the screens alike."""

from pathlib import Path

from tuilab import ledger, processes, store
from tuilab.errors import UsageError
from tuilab.ledger import Entry
from tuilab.text import show


def why_not(run_dir: Path, entry: Entry) -> str:
    """Return why a run must not be deleted; nothing when it may."""
    name = show(store.short_id(entry.run))
    if entry.is_running:
        return f"{name} is {entry.state}; stop it first: tuilab stop {name}"
    if entry.state == "unreadable":
        return f"{name} stays, because whether it goes on is not known: {show(entry.reason)}"
    if entry.state == "lost" and not store.is_imported(run_dir) and processes.marked(entry.run):
        return f"{name} is lost, and processes of it are left; end them first: tuilab stop {name}"
    return ""


def delete(run_dir: Path) -> None:
    """Delete a run, unless it must not be, as it is now."""
    if why := why_not(run_dir, ledger.read(run_dir)):
        raise UsageError(why)
    store.remove(run_dir)
