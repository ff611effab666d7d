"""The other runs in the folder of the shown run: the running ones, and its reference.

The reference is the run that it is compared with: the baseline of its scenario, or an earlier run.
"""

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
from tuilab.text.display import plural


class LiveRuns:
    """Looks for the other runs of a screen, in a thread.

    While no other run is running, it looks only if the folder has changed.
    """

    class Seen(Message):
        """The running runs were found; with `has_reference`, also the reference of this run."""

        def __init__(
            self, entries: Sequence[RunEntry], reference: Reference | None, *, has_reference: bool
        ) -> None:
            super().__init__()
            self.entries = entries
            self.reference = reference
            self.has_reference = has_reference

    def __init__(self, screen: Screen[None], index: Index, run_dir: Path) -> None:
        self._screen = screen
        self._run = run_dir.name
        self._root = run_dir.parent
        self._index = index
        self._changed_at: float | None = None  # the time of the last change of the folder
        self._reference: Reference | None = None  # the run that this one is compared with
        self._runs: list[str] = []  # the running ones in the order in which they started
        self._is_looking = False
        self._wants_reference = False

    def look(self, *, wants_reference: bool = False) -> None:
        """Look for running runs, if they may have changed, and on request for the reference."""
        self._wants_reference |= wants_reference
        if self._is_looking:
            return
        may_have_changed = bool(self._others) or store.changed_at(self._root) != self._changed_at
        if self._wants_reference or may_have_changed:
            work = partial(self._look, wants_reference=self._wants_reference)
            self._wants_reference = False
            self._is_looking = True
            self._screen.run_worker(work, thread=True, group="neighbours", exit_on_error=False)

    def take(self, message: Seen) -> None:
        """Use the running runs. Queued runs, which have nothing to show yet, are left out."""
        running = [entry.run for entry in message.entries if entry.state != RunState.QUEUED]
        self._runs = sorted(running, key=by_time)
        if message.has_reference:
            self._reference = message.reference
        self._is_looking = False
        if self._wants_reference:
            self.look()

    def next(self, step: int) -> Path | None:
        """Return the running run `step` places after this one, in a ring; None without another.

        If this run is not running, it is the first running run, or the last one for a negative
        step.
        """
        if not self._others:
            return None
        if self._run in self._runs:
            place = self._runs.index(self._run) + step
            return self._root / self._runs[place % len(self._runs)]
        if step > 0:
            return self._root / self._runs[0]
        return self._root / self._runs[-1]

    def words(self, *, is_going_on: bool) -> str:
        """Return words about other running runs, such as `2 of 3 running`; nothing without any."""
        if not self._others:
            return ""
        if is_going_on and self._run in self._runs:
            return f"{self._runs.index(self._run) + 1} of {len(self._runs)} running"
        return f"{plural(len(self._others), 'other')} running"

    def runs_to_overlay(self) -> list[tuple[Path, str]]:
        """Return the runs to overlay: the reference, and the running runs of the same scenario.

        Each has a word for its label.
        """
        runs = []
        reference_dir = None
        if self._reference:
            reference_dir = self._reference.run_dir
            word = "baseline" if self._reference.is_baseline else "earlier"
            runs.append((reference_dir, word))
        scenario = RunName(self._run).scenario
        for run in self._others:
            run_dir = self._root / run
            if RunName(run).scenario == scenario and run_dir != reference_dir:
                runs.append((run_dir, RunState.RUNNING))
        return runs

    @property
    def _others(self) -> list[str]:
        return [run for run in self._runs if run != self._run]

    def _look(self, *, wants_reference: bool) -> None:
        """Find the running runs, and on request the reference; then post `Seen`."""
        self._changed_at = store.changed_at(self._root)
        running = self._index.running()
        reference = None
        if wants_reference:
            reference = reference_for(self._root / self._run, self._index)
        self._screen.post_message(self.Seen(running, reference, has_reference=wants_reference))
