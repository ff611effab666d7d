"""List runs, as `tuilab runs` prints them."""

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

LIMIT = 20  # runs, without --limit
_READ_MISSING_S = 0.05  # a list spends this time on runs that it does not show, for the next list


class RunRow(NamedTuple):
    """A listed run."""

    root: str
    entry: RunEntry
    notes: Notes

    @property
    def folder(self) -> str:
        return f"{self.root}/{self.entry.run}"


class LazyRunList:
    """The runs of some folders, newest first. A run is read only when its entry is asked for."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.roots = roots
        self._indexes = {root: Index(root) for root in roots}
        self.runs: list[tuple[str, str]] = []  # folder of runs, and name of the run
        self.passed_over: list[str] = []  # folders with the name of a run that hold no run
        for root, index in self._indexes.items():
            run_names, other_names = folders.list_folders(root, index.kept)
            self.runs += [(root, name) for name in run_names]
            self.passed_over += [f"{root}/{name}" for name in other_names]
        if len(roots) > 1:
            self.runs.sort(key=lambda run: by_time(run[1]), reverse=True)

    def count(self, limit: int) -> str:
        """Return how many runs there are, with `{}` where their size belongs.

        `limit` is how many of them are shown.
        """
        total = len(self.runs)
        if total > limit:
            return f"… and {total - limit} more: --limit {total}, {{}}"
        return f"{plural(total, 'run')}, {{}}"

    def has_journal(self, root: str, run: str) -> bool:
        """Return whether a run still has its journal: a run in the index may be damaged since.

        A run without one is added to `passed_over`.
        """
        is_in_index = run in self._indexes[root].kept
        if is_in_index and not folders.has_journal(root, run):
            self.passed_over.append(f"{root}/{run}")
            return False
        return True

    def entry(self, root: str, run: str) -> RunEntry:
        return self._indexes[root].entry(run)

    def count_bytes(self) -> tuple[int, bool]:
        """Return the size of all runs on disk as far as it is known, and whether it is complete.

        Runs that no list has read are read for a moment. The indexes are saved, so that the next
        list knows more.
        """
        total_bytes = 0
        is_complete = True
        for root, index in self._indexes.items():
            runs = [run for folder, run in self.runs if folder == root]
            index.read_missing(runs, _READ_MISSING_S)
            index.save()
            used_bytes, is_known = index.bytes_of(runs)
            total_bytes += used_bytes
            is_complete = is_complete and is_known
        return total_bytes, is_complete


def describe_list(run_list: LazyRunList, rows: Sequence[RunRow], count: str) -> str:
    """Return rows as text; below them their number, folders without a run, and full disks.

    `count` has `{}` where the size of all runs belongs.
    """
    style = style_of(sys.stdout)
    hosts = {row.entry.host for row in rows if row.entry.host}
    has_host = bool(hosts - {os.uname().nodename})
    has_root = len(run_list.roots) > 1
    lines = [_line(row, style, has_root=has_root, has_host=has_host) for row in rows]
    used_bytes, is_complete = run_list.count_bytes()
    not_listed = folders.why_not_listed(run_list.passed_over, run_list.roots)
    if run_list.runs:
        at_least = "" if is_complete else "more than "
        lines.append(count.format(f"{at_least}{size(used_bytes)} on disk"))
    elif not not_listed:
        lines.append(f"no runs yet; start one: {_hint(run_list.roots[0])}")
    lines += not_listed
    lines += _describe_full_disks(run_list.roots, rows)
    return style.fit("\n".join(lines))


def _line(row: RunRow, style: Style, *, has_root: bool, has_host: bool) -> str:
    """Return a run as one line.

    `has_root` and `has_host` say whether the list has runs of several folders or machines.
    """
    entry = row.entry
    name = RunName(entry.run)
    columns = f"{name.id}  {name.started:17}  {show(entry.name):32} {entry.state:10}"
    remarks = [_describe_result(entry, style), _describe_changes(entry, style)]
    if entry.gpus:
        remarks.append(style.dim(f"on {show(', '.join(entry.gpus), 120)}"))
    if has_host and entry.host:
        remarks.append(style.dim(f"@{show(entry.host, 40)}"))
    remarks.append(" ".join(f"#{tag}" for tag in row.notes.tags))
    if row.notes.texts:
        _, latest_note = row.notes.texts[-1]
        remarks.append(style.dim(latest_note[:60]))
    if has_root:
        remarks.append(style.dim(show(row.root)))
    remarks_text = "  ".join(remark for remark in remarks if remark)
    return f"{columns} {_describe_duration(entry):>9}  {remarks_text}".rstrip()


def _describe_result(entry: RunEntry, style: Style) -> str:
    """Return the verdicts as marks; for a command the command, for an unreadable run the reason."""
    if entry.state == RunState.UNREADABLE:
        return show(entry.reason, 200)
    marks = "".join(style.mark(verdict) for _, verdict in entry.claims)
    return marks or show(own_words(entry), 60)


def _describe_changes(entry: RunEntry, style: Style) -> str:
    """Return the parameters that differ from the defaults, and the sweep of the run."""
    changes = changed_words(entry)
    if entry.sweep:
        changes += f"  {style.dim(show(entry.sweep, 40))}"
    return changes


def _describe_duration(entry: RunEntry) -> str:
    """Return how long a run took, how long it has run, or that it waits; n/a if that is unknown."""
    if entry.elapsed_s is not None:
        return f"{entry.elapsed_s:.1f} s"
    if entry.is_waiting:
        return WAITS
    since_s = entry.elapsed_at(time.time())
    if since_s is None:
        return "n/a"
    return f"{since_s:.0f} s +"


def _describe_full_disks(roots: Sequence[str], rows: Sequence[RunRow]) -> list[str]:
    """Return a sentence for each full disk that a running run of this machine may be writing to."""
    recording_roots = set()
    for row in rows:
        if row.entry.is_running and row.entry.is_of_this_box:
            recording_roots.add(row.root)
    if not recording_roots:
        return []
    from pathlib import Path

    from tuilab.runs import disk_room

    sentences = []
    for root in roots:
        folder = Path(root)
        if str(folder) in recording_roots and disk_room.is_full(folder):
            sentences.append(disk_room.describe_room(folder))
    return sentences


def _hint(root: str) -> str:
    from tuilab.runs.command_line import hint

    return hint(root, "run", "stability", "--headless")
