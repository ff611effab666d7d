"""Reads the runs in a folder for the History screen, in threads, and keeps what it knows of them."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from textual.message import Message
from textual.screen import Screen

from tuilab.errors import TuilabError
from tuilab.runs import notes, store
from tuilab.runs.entry import RunEntry, from_name, may_change
from tuilab.runs.filters import RunFilter, values_of, words_of
from tuilab.runs.index import Index
from tuilab.runs.notes import Notes
from tuilab.tui.terminal.delayed_call import later

_PORTION = 200  # runs that are read at a time, at most
_PORTION_S = 0.03  # seconds of reading before the screen has its turn
_PAUSE_S = 0.01
_NO_NOTES = Notes()


class HistoryReader:
    """One for the screen: `look` lists the runs, then `read_more` reads them, the visible ones first.

    `entries` and `notes` are those that the screen shows. They change only in its own thread, when a message is taken in.
    """

    class Listed(Message):
        """The folders of the runs were listed."""

        def __init__(
            self,
            runs: list[str],
            known: dict[str, RunEntry],
            notes: dict[str, Notes],
            problem: str = "",
        ) -> None:
            super().__init__()
            self.runs, self.known, self.notes, self.problem = runs, known, notes, problem

    class Read(Message):
        """Some runs were read."""

        def __init__(self, entries: list[RunEntry]) -> None:
            super().__init__()
            self.entries = entries

    def __init__(
        self, screen: Screen[None], find_index: Callable[[], Index], clock: Callable[[], float]
    ) -> None:
        self.entries: dict[str, RunEntry] = {}  # by run, newest first
        self.notes: Mapping[str, Notes] = {}  # of the runs that have any
        self.problem = ""  # why the runs could not be listed
        self.is_listed = False
        self.is_reading = True
        self._screen = screen
        self._find_index = find_index
        self._clock = clock
        self._listed_at: float | None = None  # when runs last came or went, as they were listed
        self._words: dict[
            str, str
        ] = {}  # by run: what a filter searches, of entries that were read

    # ---- what is known

    def matching(self, wanted: RunFilter) -> list[str]:
        """Return the runs that match a filter."""
        runs = []
        for run, entry in self.entries.items():
            if wanted.matches(entry, self.notes_of(run), partial(self._words_of, run)):
                runs.append(run)
        return runs

    @property
    def values(self) -> Mapping[str, Sequence[str]]:
        """The values of the runs that a filter can ask for, by its keys."""
        return {**values_of(self.entries.values()), "tag": self.tags}

    @property
    def tags(self) -> list[str]:
        """The tags that runs have."""
        return sorted({tag for written in self.notes.values() for tag in written.tags})

    def notes_of(self, run: str) -> Notes:
        """Return what people wrote about a run."""
        return self.notes.get(run, _NO_NOTES)

    @property
    def unread(self) -> list[str]:
        """The runs that have not been read yet."""
        return [run for run, entry in self.entries.items() if not entry.is_read]

    @property
    def sizes(self) -> list[int]:
        """The bytes on disk of the runs whose size is known."""
        return [
            entry.bytes_total for entry in self.entries.values() if entry.bytes_total is not None
        ]

    def is_any_recorded(self) -> bool:
        """Return whether a run is running that may be of this machine."""
        return any(entry.is_running and entry.is_of_this_box for entry in self._unfinished())

    @property
    def root(self) -> Path:
        """The folder of runs."""
        return Path(self._index.root)

    # ---- reading

    def look(self) -> None:
        """List the folders of the runs."""
        self._screen.run_worker(self._list, thread=True, exclusive=True, group="list")

    def take_list(self, message: Listed) -> None:
        """Take in which runs there are."""
        known = {**message.known, **self.entries}
        self.entries = {run: known.get(run) or from_name(run) for run in message.runs}
        for run in {*self.notes, *message.notes}:
            self._words.pop(run, None)
        self.notes, self.problem, self.is_listed = message.notes, message.problem, True

    def take(self, entries: Iterable[RunEntry]) -> set[str]:
        """Take in entries that were read; return the runs whose entry has changed."""
        changed = {
            entry.run
            for entry in entries
            if entry.run in self.entries and entry != self.entries[entry.run]
        }
        for entry in entries:
            if entry.run in changed:
                self.entries[entry.run] = entry
                self._words.pop(entry.run, None)
        return changed

    def read_more(self, in_view: Callable[[], Sequence[str]], *, is_new_list: bool = False) -> None:
        """Read the next portion; of a new list also the runs that may have changed. Save everything once all are read."""
        unread, seen = self.unread, set(in_view())
        first = [entry.run for entry in self._unfinished()] if is_new_list else []
        wanted = list(
            dict.fromkeys([*first, *(run for run in unread if run in seen), *unread[:_PORTION]])
        )
        self.is_reading = bool(wanted)
        if wanted:
            self._screen.run_worker(
                partial(self._read, wanted), thread=True, exclusive=True, group="read"
            )
        elif self._index.has_news and not self._unfinished():
            self.save()

    def read_more_soon(self, in_view: Callable[[], Sequence[str]]) -> None:
        """Read the next portion when the screen has had its turn."""
        later(self._screen, _PAUSE_S, partial(self.read_more, in_view))

    def save(self) -> None:
        """Save the index."""
        self._screen.run_worker(self._save, thread=True, group="save")

    def look_again(self) -> None:
        """List the runs again if one of them may have changed, or if runs came or went."""
        if not self.is_reading and (
            self._unfinished() or store.changed_at(self.root) != self._listed_at
        ):
            self.look()

    @property
    def _index(self) -> Index:
        return self._find_index()

    def _unfinished(self) -> list[RunEntry]:
        now_s = self._clock()
        return [entry for entry in self.entries.values() if may_change(entry, now_s)]

    def _words_of(self, run: str) -> str:
        words = self._words.get(run, "")
        if not words:
            entry = self.entries[run]
            words = words_of(entry, self.notes_of(run))
            if entry.is_read:
                self._words[run] = words
        return words

    # ---- in threads

    def _list(self) -> None:
        self._listed_at = store.changed_at(self.root)
        known = {} if self.is_listed else self._index.finished()
        try:
            runs = [run_dir.name for run_dir in store.list_runs(self.root)]
            problem = "" if runs else "; ".join(store.not_listed([self.root]))
        except TuilabError as error:
            runs, problem = [], str(error)
        written = {
            run: notes.read(self.root / run)
            for run in runs
            if os.path.lexists(f"{self.root}/{run}/{notes.FILE}")
        }
        self._screen.post_message(self.Listed(runs, known, written, problem))

    def _read(self, runs: Sequence[str]) -> None:
        """Read some runs for a short time."""
        deadline = time.monotonic() + _PORTION_S
        entries = []
        for run in runs:
            entries.append(self._index.read(run))
            if time.monotonic() > deadline:
                break
        self._screen.post_message(self.Read(entries))

    def _save(self) -> None:
        if self._index.save():
            self._listed_at = store.changed_at(self.root)
