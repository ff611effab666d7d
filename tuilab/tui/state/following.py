"""A run that a screen shows: reads its journal in portions so small that keys are answered meanwhile."""

import time
from pathlib import Path
from typing import Protocol

from tuilab.record.live_run import Watch
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.runs.disk_room import DiskRoom

GONE = "deleted"  # no state of a run: there is no record of it any more
WAS_DELETED = "was deleted; the screen shows what was read before"
_PORTION_S = 0.05


class Shown(Protocol):
    """What a pane asks of a run, whether it happens or is played again."""

    run_dir: Path
    summary: RunSummary
    arms: list[str]  # in the order in which they are told apart, the same in every pane

    @property
    def is_over(self) -> bool: ...


def note_arms(known: list[str], summary: RunSummary) -> None:
    """Append the arms that have come since; those that are known keep their place."""
    every = {arm for _, arm, _ in summary.series} | {arm for _, arm in summary.blocks}
    every |= {arm for _, race in summary.races for arm in race.arms}
    if not every <= {*known, ""}:  # to put thousands in order takes longer than to see that none has come
        known += [*dict.fromkeys([*known, *summary.arms_in_order()])][len(known) :]


class Following:
    """What is known of a run, and how new it is."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.is_caught_up = False
        self.state: str = ""  # until its record is read, or somebody has looked at the end of it
        self.arms: list[str] = []
        self._watch = Watch(run_dir, may_be_folded=True)
        self._disk = DiskRoom(run_dir)
        self.summary = self._watch.summary

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self.is_caught_up and (self.summary.is_over or self.state in (RunState.LOST, GONE))

    @property
    def bytes_read(self) -> tuple[int, int]:
        """How much of its record was read, of how much."""
        return self._watch.bytes_read

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began, or that it took."""
        if self.is_over or not self.summary.first_t:
            return self.summary.elapsed_s
        return (self._watch.now_ns - self.summary.first_t) / 1e9

    @property
    def age_s(self) -> float:
        """Seconds since the last record; 0 where none will come."""
        if self.is_over or not self.summary.last_t:
            return 0.0
        return max(self._watch.now_ns - self.summary.last_t, 0) / 1e9

    @property
    def warning(self) -> str:
        """What is told of a run that goes on here, and cannot record what it does."""
        return "" if self.is_over else self._disk.warning(self._watch)

    def read(self) -> bool:
        """Take in what is new, for a moment at most; return whether anything was."""
        deadline = time.monotonic() + _PORTION_S
        before = self.summary.records, self.state
        while time.monotonic() < deadline:
            if not self._watch.refresh():
                self.is_caught_up = True
                break
        note_arms(self.arms, self.summary)
        if self.is_caught_up:
            self.state = self._watch.state()
        return (self.summary.records, self.state) != before

    def close(self) -> None:
        self._watch.close()
