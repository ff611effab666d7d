"""The other runs in the folder of the run that is shown: which of them are running, and with which it is compared."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from textual.message import Message
from textual.screen import Screen

from tuilab.record.states import RunState
from tuilab.runs import store
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import Index
from tuilab.runs.representative import Reference, reference_for
from tuilab.runs.run_name import RunName, by_time


class LiveRuns:
    """One for a screen. It looks in a thread; while no other run is running, it looks only if one may have come."""

    class Seen(Message):
        """The running runs were found; if it was wanted, also the run that this one is compared with."""

        def __init__(
            self, entries: Sequence[RunEntry], reference: Reference | None, *, has_reference: bool
        ) -> None:
            super().__init__()
            self.entries, self.reference, self.has_reference = entries, reference, has_reference

    def __init__(self, screen: Screen[None], index: Index, run_dir: Path) -> None:
        self._screen = screen
        self._run = run_dir.name
        self._root = run_dir.parent
        self._index = index
        self._seen_at: float | None = None  # when runs last came or went, as it was last seen
        self._reference: Reference | None = None  # as it was found last
        self._runs: list[str] = []  # the running ones in the order in which they started
        self._is_looking = self._wants_reference = False

    def look(self, *, wants_reference: bool = False) -> None:
        """Find out which runs are running, unless this cannot have changed, and which run this one is compared with."""
        self._wants_reference |= wants_reference
        may_have_changed = bool(self._others) or store.changed_at(self._root) != self._seen_at
        if not self._is_looking and (self._wants_reference or may_have_changed):
            wants_reference, self._wants_reference, self._is_looking = (
                self._wants_reference,
                False,
                True,
            )
            work = partial(self._look, wants_reference=wants_reference)
            self._screen.run_worker(work, thread=True, group="neighbours", exit_on_error=False)

    def take(self, message: Seen) -> None:
        """Take in which runs are running; a queued one has nothing to show yet."""
        going = [entry.run for entry in message.entries if entry.state != RunState.QUEUED]
        self._runs = sorted(going, key=by_time)
        if message.has_reference:
            self._reference = message.reference
        self._is_looking = False
        if self._wants_reference:
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
        """Return the runs whose curves may lie behind: the one that this is compared with, and running ones of its scenario."""
        behind = []
        if self._reference:
            behind.append(
                (self._reference.run_dir, "baseline" if self._reference.is_baseline else "earlier")
            )
        scenario = RunName(self._run).scenario
        for run in self._others:
            run_dir = self._root / run
            if RunName(run).scenario == scenario and not (
                self._reference and self._reference.run_dir == run_dir
            ):
                behind.append((run_dir, RunState.RUNNING))
        return behind

    @property
    def _others(self) -> list[str]:
        return [run for run in self._runs if run != self._run]

    def _look(self, *, wants_reference: bool) -> None:
        self._seen_at = store.changed_at(self._root)
        running = self._index.running()
        reference = reference_for(self._root / self._run, self._index) if wants_reference else None
        self._screen.post_message(self.Seen(running, reference, has_reference=wants_reference))
