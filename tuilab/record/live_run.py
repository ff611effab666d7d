"""Opens a run for a view: reads and follows its journal, and says when the process that should end it is gone."""

import os
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

from tuilab.errors import UsageError
from tuilab.record.events import RunStarted, Unknown, is_newer, newer_words
from tuilab.record.folding import saved_summary
from tuilab.record.folding.fold import fold_stream
from tuilab.record.journal.follower import Follower, Portion
from tuilab.record.journal.lines import Item
from tuilab.record.origin import carried
from tuilab.record.origin.imported import is_imported
from tuilab.record.presence import Presence, has_our_clock
from tuilab.record.presence import presence as presence_of
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.text.display import show


class Watch:
    """A run being watched: `refresh` folds in what is new, each record as `filtered` returns it, and none for None.

    Who wants to know what a run amounts to, and none of its records, may have it as it is `folded`: at once, once it is over.
    """

    def __init__(
        self,
        run_dir: Path,
        filtered: Callable[[Item], Item | None] | None = None,
        *,
        may_be_folded: bool = False,
    ) -> None:
        self.run_dir = run_dir
        self._filtered = filtered
        self._may_be_folded = may_be_folded  # until all that there is was read once
        self._folded_bytes = 0  # that were not read
        self.summary = RunSummary()
        self.was_interrupted = False  # by the Ctrl-C of whoever watches
        try:
            self._follower = Follower(run_dir)
        except OSError as problem:
            raise _unreadable(run_dir, problem) from problem

    def refresh(self) -> Portion:
        """Fold in a portion of what is new and return it; nothing when there is no more for now."""
        if self._folded_bytes or self._take_folded():
            self._check_there()
            return Portion([])
        portion = self._read()
        if not portion and self._may_be_folded:
            self._may_be_folded = False
            if not self.unreadable and not self.pending_bytes:
                saved_summary.keep(self.run_dir, self.summary, self.bytes_read[0])
        return portion

    def _take_folded(self) -> bool:
        """Take what was folded before, if nothing was read yet."""
        found = (
            saved_summary.read(self.run_dir)
            if self._may_be_folded and not self.summary.records
            else None
        )
        if found is None:
            return False
        summary, self._folded_bytes = found
        vars(self.summary).update(vars(summary))  # the object that views have
        return True

    def _check_there(self) -> None:
        try:
            os.stat(self.run_dir / "journal")
        except OSError as problem:
            raise _unreadable(self.run_dir, problem) from problem

    def _read(self) -> Portion:
        try:
            portion = self._follower.read()
        except OSError as problem:
            self.close()
            raise _unreadable(self.run_dir, problem) from problem
        if newer := next(
            (record for _, items in portion.streams for record in _newer(items)), None
        ):
            self.close()
            raise UsageError(f"{show(self.run_dir.name)} {newer_words(newer)}")
        if self._filtered:
            portion.streams = [
                (name, [one for one in map(self._filtered, items) if one is not None])
                for name, items in portion.streams
            ]
        for stream, items in portion.streams:
            fold_stream(self.summary, stream, items)
        return portion

    def portions(self) -> Iterator[Portion]:
        """Fold in all that was written by now, portion by portion: who logs without end is not followed for ever.

        Of a run that is over meanwhile it is all there is.
        """
        there: dict[str, int] = {}
        while portion := self.refresh():
            there = there or self._follower.there()
            yield portion
            if self._follower.has_read(there) and not self.summary.is_over:
                return

    def catch_up(self, on_items: Callable[[Portion], object] = lambda _: None) -> None:
        """Fold in all that was written by now, and pass it on."""
        for items in self.portions():
            on_items(items)

    def state(self, on_items: Callable[[Portion], object] = lambda _: None) -> str:
        """Return the recorded state, or `lost` when nobody is left who could end it; pass on what had to be read for it."""
        if not self.summary.is_over and self.supervisor_presence == "dead":
            self.catch_up(on_items)  # it may have written its last words before it went
            if not self.summary.is_over:
                return RunState.LOST
        return self.summary.state

    @property
    def supervisor_presence(self) -> Presence:
        """Whether the supervisor is alive, dead, elsewhere (another box, whose processes cannot be seen) or unknown."""
        return presence(self.run_dir, self.summary)

    @property
    def now_ns(self) -> int:
        """The present on the clock of the records; where that is another than ours, by the time of day."""
        run = self.summary.run
        if run is None or self._has_our_clock:
            return time.monotonic_ns()
        return max(run.t + time.time_ns() - run.wall_ns, self.summary.last_t)

    @cached_property
    def _has_our_clock(self) -> bool:
        return self.summary.run is None or has_our_clock(self.summary.run.supervisor)

    @property
    def pending_bytes(self) -> int:
        return self._follower.pending_bytes

    @property
    def bytes_read(self) -> tuple[int, int]:
        """How many bytes of the record were read, of how many."""
        return (
            (self._folded_bytes, self._folded_bytes)
            if self._folded_bytes
            else self._follower.bytes_read
        )

    @property
    def unreadable(self) -> dict[str, str]:
        """Streams that cannot be opened, and why."""
        return self._follower.unreadable

    def close(self) -> None:
        """Let go of what is open; `refresh` opens it again."""
        self._follower.close()


def presence(run_dir: Path, summary: RunSummary) -> Presence:
    """Say whether the supervisor of a run lives, or who carries it here from another box.

    Nobody writes to a run that came out of an archive, wherever it ran.
    """
    if summary.run is None or is_imported(run_dir):
        return "dead"
    if summary.run.node and (carrier := carried.read(run_dir)):
        return "dead" if carrier.is_over else presence_of(carrier.process)
    return presence_of(summary.run.supervisor)


def _unreadable(run_dir: Path, problem: OSError) -> UsageError:
    why = problem.strerror if os.path.lexists(run_dir) else "it was deleted"
    return UsageError(f"cannot read the run {show(run_dir.name)}: {why}")


def _newer(items: list[Item]) -> list[RunStarted | Unknown]:
    return (
        []
        if {RunStarted, Unknown}.isdisjoint(map(type, items))
        else [item for item in items if is_newer(item)]
    )


def read_run(run_dir: Path) -> RunSummary:
    """Return the summary of a run as it is now."""
    watch = Watch(run_dir)
    watch.catch_up()
    watch.close()
    return watch.summary
