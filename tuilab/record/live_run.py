"""Opens a run for a view: follows its journal, and notices if its supervisor is gone."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path

from tuilab.errors import ScenarioError, TuilabError, UsageError
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
    """A run that is followed: `refresh` folds new records into `summary`.

    `filtered` may replace each record, or drop it by returning None. A caller that needs only the
    summary, and no records, sets `may_be_folded`: a finished run may then open at once from its
    saved summary.
    """

    def __init__(
        self,
        run_dir: Path,
        filtered: Callable[[Item], Item | None] | None = None,
        *,
        may_be_folded: bool = False,
    ) -> None:
        """Open the journal of a run; raise UsageError if it cannot be read."""
        self.run_dir = run_dir
        self._filtered = filtered
        self._may_be_folded = may_be_folded  # false from the first time that the end was reached
        self._folded_bytes = 0  # that the saved summary stands for
        self.summary = RunSummary()
        self.was_interrupted = False  # by a Ctrl-C of the user who watches
        try:
            self._follower = Follower(run_dir)
        except OSError as problem:
            raise _unreadable(run_dir, problem) from problem

    def refresh(self) -> Portion:
        """Fold a portion of the new records and return it; an empty one at the end, for now.

        The first call may use a saved summary instead: then all portions are empty. Raises
        UsageError if the journal cannot be read, or if a newer tuilab wrote it.
        """
        if self._folded_bytes or self._take_saved_summary():
            self._check_journal()
            return Portion([])
        portion = self._read()
        if not portion and self._may_be_folded:
            self._may_be_folded = False
            if not self.unreadable and not self.pending_bytes:
                saved_summary.keep(self.run_dir, self.summary, self.bytes_read[0])
        return portion

    def _take_saved_summary(self) -> bool:
        """Use the saved summary, if there is one and nothing was read yet."""
        if not self._may_be_folded or self.summary.records:
            return False
        saved = saved_summary.read(self.run_dir)
        if saved is None:
            return False
        summary, self._folded_bytes = saved
        vars(self.summary).update(vars(summary))  # views keep the summary object that they have
        return True

    def _error(self, problem: OSError) -> TuilabError:
        """Return the error for a journal that cannot be read: a run that had begun is lost."""
        if self.summary.run is None:
            return _unreadable(self.run_dir, problem)
        cause = _cause(self.run_dir, problem)
        return ScenarioError(f"the run {show(self.run_dir.name)} is lost: {cause}")

    def _check_journal(self) -> None:
        """Raise UsageError if the journal is gone, or ScenarioError if it was there before."""
        try:
            os.stat(self.run_dir / "journal")
        except OSError as problem:
            raise self._error(problem) from problem

    def _read(self) -> Portion:
        """Read a portion, drop or replace records by the filter, fold the rest, and return it.

        Raises UsageError if the journal cannot be read, or if a newer tuilab wrote it. Raises
        ScenarioError if the journal could be read before.
        """
        try:
            portion = self._follower.read()
        except OSError as problem:
            self.close()
            raise self._error(problem) from problem
        for _, items in portion.streams:
            self._refuse_newer(items)
        if self._filtered:
            portion.streams = [
                (stream, self._filter(self._filtered, items)) for stream, items in portion.streams
            ]
        for stream, items in portion.streams:
            fold_stream(self.summary, stream, items)
        return portion

    def _refuse_newer(self, items: list[Item]) -> None:
        """Raise UsageError if a newer tuilab recorded the run in a format of its own."""
        if {RunStarted, Unknown}.isdisjoint(map(type, items)):
            return
        for item in items:
            if is_newer(item):
                self.close()
                raise UsageError(f"{show(self.run_dir.name)} {newer_words(item)}")

    @staticmethod
    def _filter(filtered: Callable[[Item], Item | None], items: list[Item]) -> list[Item]:
        return [item for item in map(filtered, items) if item is not None]

    def portions(self) -> Iterator[Portion]:
        """Fold everything that is written by now, portion by portion.

        A run that logs without end is not followed for ever. If the run ends meanwhile, its journal
        is read to the end.
        """
        sizes: dict[str, int] = {}
        while True:
            portion = self.refresh()
            if not portion:
                return
            sizes = sizes or self._follower.stream_sizes()  # as they were after the first portion
            yield portion
            if self._follower.has_read(sizes) and not self.summary.is_over:
                return

    def catch_up(self, on_items: Callable[[Portion], object] = lambda _: None) -> None:
        """Fold everything that is written by now, and pass on its portions."""
        for portion in self.portions():
            on_items(portion)

    def state(self, on_items: Callable[[Portion], object] = lambda _: None) -> str:
        """Return the recorded state, or `lost` if the supervisor died without ending the run.

        Portions that had to be read for it are passed on.
        """
        if not self.summary.is_over and self.supervisor_presence == "dead":
            self.catch_up(on_items)  # its last records may be unread
            if not self.summary.is_over:
                return RunState.LOST
        return self.summary.state

    @property
    def supervisor_presence(self) -> Presence:
        """Whether the supervisor is alive, dead, unknown, or elsewhere: on another machine."""
        return presence(self.run_dir, self.summary)

    @property
    def now_ns(self) -> int:
        """The present on the clock of the records; if ours is another clock, by the time of day."""
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
    def unexplained_bytes(self) -> int:
        """The pending bytes of streams whose worker did not report that records are lost."""
        count = 0
        for stream, pending in self._follower.pending_by_stream.items():
            if stream not in self.summary.damage.lost:
                count += pending
        return count

    @property
    def bytes_read(self) -> tuple[int, int]:
        """The bytes of the journal that were read, and all its bytes."""
        if self._folded_bytes:
            return self._folded_bytes, self._folded_bytes
        return self._follower.bytes_read

    @property
    def unreadable(self) -> dict[str, str]:
        """Streams that cannot be opened, and why."""
        return self._follower.unreadable

    def close(self) -> None:
        """Close the open files; `refresh` opens them again."""
        self._follower.close()


def presence(run_dir: Path, summary: RunSummary) -> Presence:
    """Say whether the supervisor of a run lives; for a run on another node, its carrier here.

    A run that came out of an archive has neither: no process writes to it.
    """
    if summary.run is None or is_imported(run_dir):
        return "dead"
    carrier = None
    if summary.run.node:
        carrier = carried.read(run_dir)
    if not carrier:
        return presence_of(summary.run.supervisor)
    if carrier.is_over:
        return "dead"
    return presence_of(carrier.process)


def _unreadable(run_dir: Path, problem: OSError) -> UsageError:
    return UsageError(f"cannot read the run {show(run_dir.name)}: {_cause(run_dir, problem)}")


def _cause(run_dir: Path, problem: OSError) -> str | None:
    return problem.strerror if os.path.lexists(run_dir) else "its folder was deleted or moved"


def read_run(run_dir: Path) -> RunSummary:
    """Return the summary of a run as it is now; raise UsageError if it cannot be read."""
    with closing(Watch(run_dir)) as watch:
        watch.catch_up()
    return watch.summary
