"""The index of the runs in one folder: an entry for each run, kept in one file next to the runs.

The index only saves time. The runs are the truth: a run that the file does not hold is read from
its journal. So the file can be deleted at any time, and a damaged one is written again. Several
clients may use one folder, also over NFS: each writes a new file and renames it into place, and the
worst that can happen is that an entry is read once more. The file name has the version of its form,
so that a newer and an older tuilab do not undo each other's work.

Kept free of slow imports: `tuilab list` and `tuilab runs` load it.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from tuilab.runs.entry import RunEntry, from_fields, may_change
from tuilab.runs.folders import run_names
from tuilab.storage.files import Unusable, read_small, replace, sealed, unsealed

if TYPE_CHECKING:
    from pathlib import Path

_FORM = 1  # another number for each other form of the file, and for each other field of an entry
FILE = f".index-{_FORM}"
_LIMIT = 64 * 1024 * 1024
_NEWEST = 100  # runs among which the running ones are searched


class Index:
    """The entries of the runs in a folder.

    The screens share one index, and several threads use it at a time.
    """

    def __init__(self, root: "str | Path", *, is_kept: bool = True) -> None:
        self.root = os.fspath(root)
        self._is_kept = is_kept  # False: the file is never written
        self._entries: dict[str, RunEntry] = {}  # those that were asked for, by name of the run
        self.has_news = False  # an entry was read that the file should have

    def in_folder(self, root: "str | Path") -> "Index":
        """Return this index if it is of that folder, else a new one of the folder."""
        return self if os.fspath(root) == self.root else Index(root)

    @cached_property
    def kept(self) -> Mapping[str, bytes]:
        """The rows of the file by run, not decoded.

        Two threads that ask at the same time may each read the file.
        """
        return _read_rows(self.root)

    def entry(self, run: str) -> RunEntry:
        """Return the entry of a run, which is read if it is not known or may have changed."""
        entry = self._known(run)
        if entry is None or may_change(entry, time.time()):
            return self.read(run)
        return entry

    def entry_if_over(self, run: str) -> RunEntry | None:
        """Return the entry of a finished run if it is known, without reading the run."""
        entry = self._known(run)
        if entry is None or not entry.is_over:
            return None
        return entry

    def read(self, run: str) -> RunEntry:
        """Read a run and return its entry."""
        from tuilab.runs import read_entry  # imported here: a complete index needs no journal

        entry = read_entry.read_entry(os.path.join(self.root, run))
        if entry.is_over and entry != self._known(run):
            self.has_news = True
        self._entries[run] = entry
        return entry

    def read_missing(self, runs: Iterable[str], patience_s: float) -> None:
        """Read runs that the index does not have yet, for a limited time.

        The next list is then complete, or nearer to it.
        """
        until = time.monotonic() + patience_s
        for run in runs:
            if run in self._entries or run in self.kept:
                continue
            if time.monotonic() > until:
                return
            self.read(run)

    def finished(self) -> dict[str, RunEntry]:
        """Return all known entries of finished runs by name, without reading a run."""
        entries = {}
        for run in {*self.kept, *self._entries}:
            entry = self.entry_if_over(run)
            if entry:
                entries[run] = entry
        return entries

    def running(self) -> list[RunEntry]:
        """Return the runs that are running or queued, newest first, among the newest 100 runs.

        This is cheap enough to ask every second.
        """
        entries = map(self.entry, run_names(self.root)[:_NEWEST])
        return [entry for entry in entries if entry.is_running]

    def bytes_of(self, runs: Iterable[str]) -> tuple[int, bool]:
        """Return the total size of some runs on disk, and whether the size of each is known."""
        total = 0
        is_complete = True
        for run in runs:
            size = self._bytes_of(run)
            if size is None:
                is_complete = False
            else:
                total += size
        return total, is_complete

    def save(self) -> bool:
        """Write the new entries to the file, and return whether there were any.

        If the file cannot be written, nothing is lost, and True is returned as well.
        """
        if not self.has_news or not self._is_kept:
            return False
        self.has_news = False
        with suppress(OSError):
            self._write()
        return True

    def _known(self, run: str) -> RunEntry | None:
        """Return the entry of a run if it was read before or is in the file; else None."""
        entry = self._entries.get(run)
        if entry is None and run in self.kept:
            entry = _read_row(run, self.kept[run])
            if entry is not None:
                entry = self._entries.setdefault(run, entry)
        return entry

    def _bytes_of(self, run: str) -> int | None:
        """Return the size of a run from its entry or its row in the file; None if not known."""
        entry = self._entries.get(run)
        if entry is not None:
            return entry.bytes_total
        size = self.kept.get(run, b"").partition(b"\t")[0]
        return int(size) if size.isdigit() else None

    def _write(self) -> None:
        """Replace the file by one that also has our rows; other clients may have added some."""
        import msgspec  # imported here: it is loaded already if a run was read

        rows = dict(_read_rows(self.root))
        for entry in list(self._entries.values()):
            if entry.is_over:
                size = "" if entry.bytes_total is None else str(entry.bytes_total)
                rows[entry.run] = b"%b\t%b" % (size.encode(), msgspec.json.encode(entry))
        runs = [run for run in run_names(self.root) if run in rows]
        lines = [b"%b\t%b" % (run.encode(), rows[run]) for run in runs]
        replace(f"{self.root}/{FILE}", sealed(b"\n".join(lines)))


def _read_rows(root: str) -> dict[str, bytes]:
    """Return the rows of the file by run, not decoded; none if it is missing or damaged."""
    with suppress(Unusable):
        return read_small(f"{root}/{FILE}", _split, _LIMIT)
    return {}


def _split(data: bytes) -> dict[str, bytes]:
    """Return the rows by run.

    A line is the name of the run, its bytes on disk and its entry in JSON, with tabs between.
    """
    rows = {}
    for line in unsealed(data).splitlines():
        run, _, row = line.partition(b"\t")
        rows[run.decode()] = row
    return rows


def _read_row(run: str, row: bytes) -> RunEntry | None:
    """Return the entry in a row; None if another program wrote something else there."""
    with suppress(ValueError, TypeError, RecursionError):
        entry = from_fields(json.loads(row.partition(b"\t")[2]))
        if entry.is_over and entry.run == run:
            return entry
    return None
