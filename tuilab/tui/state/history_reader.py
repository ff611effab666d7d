"""Read the runs in a folder for the History screen, in threads."""

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
    """Lists the runs with `look`, then reads them with `read_more`, the visible ones first.

    `entries` and `notes` are those that the screen shows. They change only in the thread of the
    screen, when it passes a message to `take_list` or `take`.
    """

    class Listed(Message):
        """The folders of the runs were listed."""

        def __init__(
            self,
            runs: list[str],
            finished: dict[str, RunEntry],
            notes: dict[str, Notes],
            problem: str = "",
        ) -> None:
            super().__init__()
            self.runs = runs
            self.finished = finished
            self.notes = notes
            self.problem = problem

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
        self._listed_at: float | None = None  # the time of the last change of the listed folder
        self._words: dict[str, str] = {}  # the text that a filter searches, by run that was read

    # ---- entries and notes

    def matching(self, run_filter: RunFilter) -> list[str]:
        """Return the runs that match a filter."""
        runs = []
        for run, entry in self.entries.items():
            find_words = partial(self._words_of, run)
            if run_filter.matches(entry, self.notes_of(run), find_words):
                runs.append(run)
        return runs

    @property
    def values(self) -> Mapping[str, Sequence[str]]:
        """The values of the runs that a filter can ask for, by its keys."""
        return {**values_of(self.entries.values()), "tag": self.tags}

    @property
    def tags(self) -> list[str]:
        """The tags of all runs, sorted."""
        tags: set[str] = set()
        for run_notes in self.notes.values():
            tags.update(run_notes.tags)
        return sorted(tags)

    def notes_of(self, run: str) -> Notes:
        """Return the tags and the notes of a run."""
        return self.notes.get(run, _NO_NOTES)

    @property
    def unread(self) -> list[str]:
        """The runs that have not been read yet."""
        return [run for run, entry in self.entries.items() if not entry.is_read]

    @property
    def sizes(self) -> list[int]:
        """The bytes on disk of the runs whose size is known."""
        sizes = []
        for entry in self.entries.values():
            if entry.bytes_total is not None:
                sizes.append(entry.bytes_total)
        return sizes

    def is_any_recorded(self) -> bool:
        """Return whether a run is running or queued, as far as is known on this machine."""
        return any(entry.is_running and entry.is_of_this_box for entry in self._unfinished())

    @property
    def root(self) -> Path:
        """The folder of runs."""
        return Path(self._index.root)

    # ---- reading

    def look(self) -> None:
        """List the folders of the runs in a thread, then post `Listed`."""
        self._screen.run_worker(self._list, thread=True, exclusive=True, group="list")

    def take_list(self, message: Listed) -> None:
        """Use the list of runs.

        Entries that were read stay, and runs that are not listed any more are dropped.
        """
        old_entries = {**message.finished, **self.entries}
        entries = {}
        for run in message.runs:
            entries[run] = old_entries.get(run) or from_name(run)
        self.entries = entries
        for run in {*self.notes, *message.notes}:
            self._words.pop(run, None)  # notes may have changed
        self.notes = message.notes
        self.problem = message.problem
        self.is_listed = True

    def take(self, entries: Iterable[RunEntry]) -> set[str]:
        """Use entries that were read. Return the runs whose entries have changed."""
        changed = set()
        for entry in entries:
            run = entry.run
            # A run that is listed no more was deleted meanwhile.
            if run in self.entries and entry != self.entries[run]:
                changed.add(run)
                self.entries[run] = entry
                self._words.pop(run, None)
        return changed

    def read_more(self, in_view: Callable[[], Sequence[str]], *, is_new_list: bool = False) -> None:
        """Read the next runs in a thread, those in view first, and post `Read`.

        With a new list, the runs that may have changed are read again before them. A call reads
        only for a short time, so the screen calls `read_more_soon` after each `Read`. Once all are
        read, and none may change any more, the index is saved.
        """
        unread = self.unread
        visible = set(in_view())
        candidates = []
        if is_new_list:
            candidates += [entry.run for entry in self._unfinished()]
        candidates += [run for run in unread if run in visible]
        candidates += unread[:_PORTION]
        runs = list(dict.fromkeys(candidates))
        self.is_reading = bool(runs)
        if runs:
            work = partial(self._read, runs)
            self._screen.run_worker(work, thread=True, exclusive=True, group="read")
        elif self._index.has_news and not self._unfinished():
            self.save()

    def read_more_soon(self, in_view: Callable[[], Sequence[str]]) -> None:
        """Read the next runs after the screen has handled its keys."""
        later(self._screen, _PAUSE_S, partial(self.read_more, in_view))

    def save(self) -> None:
        """Save the index."""
        self._screen.run_worker(self._save, thread=True, group="save")

    def look_again(self) -> None:
        """List the runs again if one of them may have changed, or if runs came or went."""
        if self.is_reading:
            return
        if self._unfinished() or store.changed_at(self.root) != self._listed_at:
            self.look()

    @property
    def _index(self) -> Index:
        return self._find_index()

    def _unfinished(self) -> list[RunEntry]:
        now_s = self._clock()
        return [entry for entry in self.entries.values() if may_change(entry, now_s)]

    def _words_of(self, run: str) -> str:
        """Return the text of a run that a filter searches.

        It is kept once the entry has been read, also of a running run: whoever replaces the entry
        or its notes drops the text.
        """
        words = self._words.get(run, "")
        if not words:
            entry = self.entries[run]
            words = words_of(entry, self.notes_of(run))
            if entry.is_read:
                self._words[run] = words
        return words

    # ---- in threads

    def _list(self) -> None:
        """List the runs and read their notes, then post `Listed`.

        If the folder cannot be listed or has no runs, `problem` says why, as far as is known.
        """
        self._listed_at = store.changed_at(self.root)
        finished = {}
        if not self.is_listed:  # only the first list needs the entries of the index
            finished = self._index.finished()
        runs = []
        problem = ""
        try:
            runs = [run_dir.name for run_dir in store.list_runs(self.root)]
            if not runs:
                problem = "; ".join(store.not_listed([self.root]))
        except TuilabError as error:
            problem = str(error)
        run_notes = {}
        for run in runs:
            if os.path.lexists(f"{self.root}/{run}/{notes.FILE}"):
                run_notes[run] = notes.read(self.root / run)
        self._screen.post_message(self.Listed(runs, finished, run_notes, problem))

    def _read(self, runs: Sequence[str]) -> None:
        """Read the first of these runs, at least one, for a short time; then post `Read`."""
        deadline = time.monotonic() + _PORTION_S
        entries = []
        for run in runs:
            entries.append(self._index.read(run))
            if time.monotonic() > deadline:
                break
        self._screen.post_message(self.Read(entries))

    def _save(self) -> None:
        # The file of the index is in the folder, so its change is no news.
        if self._index.save():
            self._listed_at = store.changed_at(self.root)
