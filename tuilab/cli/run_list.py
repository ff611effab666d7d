"""The runs as `tuilab runs` prints them."""

import os
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from tuilab.drawings.glyphs import Style, style_of
from tuilab.record.states import RunState
from tuilab.runs import folders
from tuilab.runs.entry import WAITS, RunEntry, changed_words, own_words
from tuilab.runs.index import Index
from tuilab.runs.notes import Notes
from tuilab.runs.run_name import RunName, by_time
from tuilab.text.display import plural, show
from tuilab.text.words import size

LIMIT = 20  # runs, where nobody says how many
_READ_MISSING_S = 0.05  # seconds in which a list reads runs for the next one


class RunRow(NamedTuple):
    """A run that is shown."""

    root: str
    entry: RunEntry
    notes: Notes

    @property
    def folder(self) -> str:
        return f"{self.root}/{self.entry.run}"


class LazyRunList:
    """The runs of some folders, newest first; a run is read only when it is asked for."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.roots = roots
        self._indexes = {root: Index(root) for root in roots}
        self.runs: list[tuple[str, str]] = []  # folder and name
        self.passed_over: list[str] = []  # the folders that have the name of a run and are none
        for root, index in self._indexes.items():
            names, others = folders.list_folders(root, index.kept)
            self.runs += [(root, name) for name in names]
            self.passed_over += [f"{root}/{name}" for name in others]
        if len(roots) > 1:
            self.runs.sort(key=lambda run: by_time(run[1]), reverse=True)

    def count(self, limit: int) -> str:
        """Return how many there are, of which so many are shown, and `{}` for what they take."""
        total = len(self.runs)
        return f"{f'… and {total - limit} more: --limit {total}' if total > limit else plural(total, 'run')}, {{}}"

    def is_there(self, root: str, run: str) -> bool:
        """Return whether a run has its journal: that of a run in the index may have been damaged since."""
        is_there = run not in self._indexes[root].kept or folders.has_journal(root, run)
        if not is_there:
            self.passed_over.append(f"{root}/{run}")
        return is_there

    def entry(self, root: str, run: str) -> RunEntry:
        return self._indexes[root].entry(run)

    def used(self) -> tuple[int, bool]:
        """Return the bytes of all runs on disk as far as they are known, and whether that is all; save the indexes."""
        total, is_complete = 0, True
        for root, index in self._indexes.items():
            runs = [run for folder, run in self.runs if folder == root]
            index.read_missing(runs, _READ_MISSING_S)
            index.save()
            used, is_known = index.bytes_of(runs)
            total += used
            is_complete &= is_known
        return total, is_complete


def describe_list(found: LazyRunList, rows: Sequence[RunRow], count: str) -> str:
    """Return rows as text, below them how many there are (`count`, with `{}` for what they take), and what is to be minded."""
    style = style_of(sys.stdout)
    hosts = {row.entry.host for row in rows if row.entry.host}
    has_host = bool(hosts - {os.uname().nodename})
    lines = [_line(row, style, has_root=len(found.roots) > 1, has_host=has_host) for row in rows]
    used, is_all = found.used()
    not_listed = folders.why_not_listed(found.passed_over, found.roots)
    if found.runs:
        lines.append(count.format(f"{'' if is_all else 'more than '}{size(used)} on disk"))
    elif not not_listed:
        lines.append(f"no runs yet; start one: {_hint(found.roots[0])}")
    return style.fit("\n".join([*lines, *not_listed, *_full_disks(found.roots, rows)]))


def _line(row: RunRow, style: Style, *, has_root: bool, has_host: bool) -> str:
    name, entry = RunName(row.entry.run), row.entry
    marks = "".join(style.mark(verdict) for _, verdict in entry.claims)
    describe_list = (
        show(entry.reason, 200)
        if entry.state == RunState.UNREADABLE
        else marks or show(own_words(entry), 60)
    )
    tags = " ".join(f"#{tag}" for tag in row.notes.tags)
    last = style.dim(row.notes.texts[-1][1][:60]) if row.notes.texts else ""
    root = style.dim(show(row.root)) if has_root else ""
    host = style.dim(f"@{show(entry.host, 40)}") if has_host and entry.host else ""
    gpus = style.dim(f"on {show(', '.join(entry.gpus), 120)}") if entry.gpus else ""
    more = "  ".join(
        part
        for part in (describe_list, _changes(entry, style), gpus, host, tags, last, root)
        if part
    )
    return f"{name.id}  {name.started:17}  {show(entry.name):32} {entry.state:10} {_lasting(entry):>9}  {more}".rstrip()


def _changes(entry: RunEntry, style: Style) -> str:
    """Return the parameters that differ from the defaults, and the id of the sweep that the run is a point of."""
    changes = changed_words(entry)
    if entry.sweep:
        changes += f"  {style.dim(show(entry.sweep, 40))}"
    return changes


def _lasting(entry: RunEntry) -> str:
    if entry.elapsed_s is not None:
        return f"{entry.elapsed_s:.1f} s"
    since_s = entry.elapsed_at(time.time())
    return WAITS if entry.is_waiting else "n/a" if since_s is None else f"{since_s:.0f} s +"


def _full_disks(roots: Sequence[str], rows: Sequence[RunRow]) -> list[str]:
    """Return a sentence for each folder that has no room, where a run goes on in it that may be one of this box."""
    recording = {row.root for row in rows if row.entry.is_running and row.entry.is_of_this_box}
    if not recording:
        return []
    from pathlib import Path

    from tuilab.runs import disk_room

    return [
        disk_room.describe_room(root)
        for root in map(Path, roots)
        if str(root) in recording and disk_room.is_full(root)
    ]


def _hint(root: str) -> str:
    from tuilab.runs.command_line import hint

    return hint(root, "run", "stability", "--headless")
