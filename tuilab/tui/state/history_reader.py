"""Reads the runs in a folder for the History screen, beside the main path, and posts to the screen what it found."""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from textual.message import Message
from textual.screen import Screen

from tuilab.errors import TuilabError
from tuilab.runs import notes, store
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.listing.entry import Entry
from tuilab.runs.notes import Notes
from tuilab.tui.state.run_index import KnownRuns
from tuilab.tui.terminal.later import later

_PORTION_S = 0.03  # of reading, before the screen has its turn
_PAUSE_S = 0.01


class HistoryReader:
    """One for the screen: `look` which runs there are, then `read_more` of what happened in them, the visible ones first."""

    class Listed(Message):
        """The folders of the runs were listed."""

        def __init__(self, runs: list[str], known: dict[str, Entry], notes: dict[str, Notes], problem: str = "") -> None:
            super().__init__()
            self.runs, self.known, self.notes, self.problem = runs, known, notes, problem

    class Read(Message):
        """Something was learnt about some runs."""

        def __init__(self, entries: list[Entry]) -> None:
            super().__init__()
            self.entries = entries

    def __init__(self, screen: Screen[None], cache: Callable[[], LedgerCache], clock: Callable[[], float]) -> None:
        self.known = KnownRuns()
        self.problem = ""  # why they could not be listed
        self.is_reading = True
        self._screen = screen
        self._find_cache = cache
        self._clock = clock
        self._listed_at: float | None = None  # when the folder of runs was last changed, as it was listed

    def look(self) -> None:
        """List the folders of the runs."""
        self._screen.run_worker(self._list, thread=True, exclusive=True, group="list")

    def take_list(self, message: Listed) -> None:
        """Take in which runs there are."""
        self.problem = message.problem
        self.known.take_list(message.runs, message.known, message.notes)

    def read_more(self, in_view: Callable[[], Sequence[str]], *, is_new_list: bool = False) -> None:
        """Read the next portion, of a new list what goes on, too; remember everything once all is read."""
        wanted = self.known.to_read(self._going_on() if is_new_list else (), in_view())
        self.is_reading = bool(wanted)
        if wanted:
            self._screen.run_worker(partial(self._read, wanted), thread=True, exclusive=True, group="read")
        elif self._cache.has_news and not self._going_on():
            self.remember()

    def read_more_soon(self, in_view: Callable[[], Sequence[str]]) -> None:
        """Read the next portion when the screen has had its turn."""
        later(self._screen, _PAUSE_S, partial(self.read_more, in_view))

    def remember(self) -> None:
        """Remember what is known."""
        self._screen.run_worker(self._remember, thread=True, group="remember")

    def look_again(self) -> None:
        """Look again at what goes on, and for runs that came or went; nobody is asked about what stays as it is."""
        if not self.is_reading and (self._going_on() or store.changed_at(self.root) != self._listed_at):
            self.look()

    def is_any_recorded(self) -> bool:
        """Say whether a run goes on that may be one of this box."""
        entries = self.known.entries
        return any(entries[run].is_running and entries[run].is_of_this_box for run in self._going_on())

    @property
    def _cache(self) -> LedgerCache:
        return self._find_cache()

    @property
    def root(self) -> Path:
        """The folder of runs."""
        return Path(self._cache.root)

    def _going_on(self) -> Sequence[str]:
        return self.known.going_on(self._clock())

    def _list(self) -> None:
        self._listed_at = store.changed_at(self.root)
        known = {} if self.known.is_listed else self._cache.over()
        try:
            runs = [run_dir.name for run_dir in store.list_runs(self.root)]
            problem = "" if runs else "; ".join(store.not_listed([self.root]))
        except TuilabError as error:
            runs, problem = [], str(error)
        if problem:
            self._screen.post_message(self.Listed([], {}, {}, problem))
        else:
            written = {run: notes.read(self.root / run) for run in runs if os.path.lexists(f"{self.root}/{run}/{notes.FILE}")}
            self._screen.post_message(self.Listed(runs, known, written))

    def _read(self, runs: Sequence[str]) -> None:
        """Read about some runs, for a short time, and say what was learnt."""
        deadline = time.monotonic() + _PORTION_S
        entries = []
        for run in runs:
            entries.append(self._cache.look(self.root / run))
            if time.monotonic() > deadline:
                break
        self._screen.post_message(self.Read(entries))

    def _remember(self) -> None:
        if self._cache.keep():
            self._listed_at = store.changed_at(self.root)
