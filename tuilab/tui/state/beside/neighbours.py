"""The other runs in the folder of one that is shown: which of them go on, and which it is held against."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from textual.message import Message
from textual.screen import Screen

from tuilab.record.states import RunState
from tuilab.runs.beside.against import held_against
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.listing.entry import Entry
from tuilab.runs.run_name import RunName, by_time
from tuilab.runs.running import GoingOn

Held = tuple[Path | None, bool]
"""A run that another one is held against, and whether it is the baseline."""


class Neighbours:
    """One for a screen. It looks beside the main path, and while no other run goes on, only when one may have come."""

    class Seen(Message):
        """Which runs go on has been found out; where that was wanted, which run this one is held against."""

        def __init__(self, entries: Sequence[Entry], held: Held | None) -> None:
            super().__init__()
            self.entries, self.held = entries, held

    def __init__(self, screen: Screen[None], ledger: LedgerCache, run_dir: Path) -> None:
        self._screen = screen
        self._run = run_dir.name
        self._root = run_dir.parent
        self._ledger = ledger
        self._going_on = GoingOn(ledger)
        self._held: Held | None = None  # as it was found last
        self._runs: list[str] = []  # those that go on, in the order in which they began
        self._is_looking = self._wants_held = False

    def look(self, *, wants_held: bool = False) -> None:
        """Find out which runs go on, unless that must be known, and which run this one is held against, if that is wanted."""
        self._wants_held |= wants_held
        if not self._is_looking and (self._wants_held or self._others or self._going_on.has_changed()):
            wants_held, self._wants_held, self._is_looking = self._wants_held, False, True
            self._screen.run_worker(partial(self._look, wants_held), thread=True, group="neighbours", exit_on_error=False)

    def take(self, message: Seen) -> None:
        """Take in which runs go on; one that waits in the queue has nothing to show yet."""
        going = [entry.run for entry in message.entries if entry.state != RunState.QUEUED]
        self._runs = sorted(going, key=by_time)
        self._held = message.held or self._held
        self._is_looking = False
        if self._wants_held:
            self.look()

    def next(self, step: int) -> Path | None:
        """Return the run that goes on so many places after this one, or before it; they go round. None: there is no other."""
        if not self._others:
            return None
        if self._run in self._runs:
            return self._root / self._runs[(self._runs.index(self._run) + step) % len(self._runs)]
        return self._root / self._runs[0 if step > 0 else -1]

    def words(self, *, is_going_on: bool) -> str:
        """Return that there are others: `2 of 3 running`; nothing where there are none."""
        if not self._others:
            return ""
        if is_going_on and self._run in self._runs:
            return f"{self._runs.index(self._run) + 1} of {len(self._runs)} running"
        count = len(self._others)
        return f"{count} other{'s' if count != 1 else ''} running"

    def behind(self) -> list[tuple[Path, str]]:
        """Return the runs whose curves may lie behind: the one that this is held against, and what of its scenario goes on."""
        run_dir, is_baseline = self._held or (None, False)
        held = [(run_dir, "baseline" if is_baseline else "earlier")] if run_dir else []
        scenario = RunName(self._run).scenario
        going = [self._root / run for run in self._others if RunName(run).scenario == scenario]
        return [*held, *((one, RunState.RUNNING) for one in going if one != run_dir)]

    @property
    def _others(self) -> list[str]:
        return [run for run in self._runs if run != self._run]

    def _look(self, wants_held: bool) -> None:
        found = self._going_on.look()
        held = held_against(self._root / self._run, self._ledger) if wants_held else None
        self._screen.post_message(self.Seen(found, held))
