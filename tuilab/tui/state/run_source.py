"""The run that a screen shows, live or replayed.

It is read in portions, so that keys are answered in between.
"""

import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from tuilab.errors import UsageError
from tuilab.record import events
from tuilab.record.folding.fold import fold
from tuilab.record.journal.lines import Item
from tuilab.record.live_run import Watch
from tuilab.record.series import Series
from tuilab.record.states import RUNNING_STATES, RunState
from tuilab.record.summary import RunSummary
from tuilab.runs.disk_room import DiskRoom, RunGrowth

Key = TypeVar("Key")
GONE = "deleted"  # no state of a run: there is no record of it any more
WAS_DELETED = "was deleted; the screen shows what was read before"
_PORTION_S = 0.05
_SLOW_S = 2.0  # between two pictures on a slow link, so that keys are answered in between
# Between two pictures while a long record is read: each takes as long as reading some MiB.
_LOADING_S = 1.0
_SPEEDS = (0.1, 1000.0)
_WHOLE_S = 30.0  # a longer run is replayed faster, so that the replay takes no longer than this


class RunSource:
    """The interface of a run for a screen and its panes.

    The action `play('seek', 0.05)` calls `seek(0.05)`. Each of these actions returns the source
    that is shown from then on.
    """

    is_live = True  # not a replay

    def __init__(self, run_dir: Path, watch: Watch) -> None:
        self.run_dir = run_dir
        self.summary = watch.summary
        # The variants that are compared, in an order that all panes share: it sets their styles.
        self.arms: list[str] = []
        self.state: str = ""  # empty until the record, or at least its end, was read
        self.is_caught_up = False
        self.is_frozen = False
        self.has_news = False  # whether something new is not on the screen yet
        self._watch = watch
        self._shown_s = 0.0  # the time of the last picture

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        raise NotImplementedError

    @property
    def elapsed_s(self) -> float:
        """The seconds since the run began; of a finished run, its duration."""
        raise NotImplementedError

    @property
    def age_s(self) -> float:
        """The seconds since the last record; 0 if no more records will come."""
        return 0.0

    @property
    def warning(self) -> str:
        """The reason why a running run cannot be recorded, or nothing."""
        return ""

    @property
    def place(self) -> str:
        """The place of `keys.py` that says what can be done with the run."""
        raise NotImplementedError

    @property
    def bytes_read(self) -> tuple[int, int]:
        """The bytes of the record that were read, and its size."""
        return self._watch.bytes_read

    def read(self) -> bool:
        """Read what is new, for a moment at most; return whether anything was.

        Raise TuilabError if the record cannot be read.
        """
        raise NotImplementedError

    def close(self) -> None:
        self._watch.close()

    def is_picture_fresh(self, *, is_link_slow: bool, is_more_read: bool) -> bool:
        """Return whether the last picture is new enough for a slow link, or while more is read."""
        age_s = time.monotonic() - self._shown_s
        if is_link_slow and age_s < _SLOW_S:
            return True
        return is_more_read and age_s < _LOADING_S

    def note_picture(self) -> None:
        """Note that everything is on the screen."""
        self._shown_s = time.monotonic()
        self.has_news = False

    def freeze(self) -> "RunSource":
        """Freeze or resume the display of a running run; play or pause a replay.

        A finished run is replayed.
        """
        raise NotImplementedError

    def replay(self) -> "RunSource":
        """Replay the run from its start. This source is closed.

        Raise UsageError if the run is still running.
        """
        if not self.is_over:
            raise UsageError("a running run cannot be replayed yet")
        self.close()
        return Replay(self.run_dir)

    def speed_up(self, factor: float) -> "RunSource":
        """Replay faster or slower, within limits. For a live run, do nothing."""
        return self

    def seek(self, share: float) -> "RunSource":
        """Move the replay by a share of the run. For a live run, do nothing."""
        return self


class LiveRun(RunSource):
    """A run as it happens, or its record."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__(run_dir, Watch(run_dir, may_be_folded=True))
        self._disk = DiskRoom(run_dir)
        self._growth = RunGrowth()

    @property
    def is_over(self) -> bool:
        if not self.is_caught_up:
            return False
        return self.summary.is_over or self.state in (RunState.LOST, GONE)

    @property
    def elapsed_s(self) -> float:
        """The seconds since the run began, by the clock of its machine; at last its duration."""
        if self.is_over or not self.summary.first_t:
            return self.summary.elapsed_s
        return (self._watch.now_ns - self.summary.first_t) / 1e9

    @property
    def age_s(self) -> float:
        if self.is_over or not self.summary.last_t:
            return 0.0
        return max(self._watch.now_ns - self.summary.last_t, 0) / 1e9

    @property
    def place(self) -> str:
        """The place that says what can be done: it depends on what is known of the run by now."""
        if self.is_over:
            return "finished run"
        if not self.is_caught_up and self.state not in RUNNING_STATES:
            return "run being read"
        return "frozen run" if self.is_frozen else "running run"

    @property
    def warning(self) -> str:
        if self.is_over:
            return ""
        self._growth.read(time.monotonic(), self.bytes_read[1])
        return self._disk.warning(self._watch) or self._growth.warning(self._disk.free_bytes)

    def read(self) -> bool:
        """Read new records for a moment. The state is known only when all records were read."""
        deadline = time.monotonic() + _PORTION_S
        old_state = self.summary.records, self.state
        while time.monotonic() < deadline:
            if not self._watch.refresh():
                self.is_caught_up = True
                break
        note_arms(self.arms, self.summary)
        if self.is_caught_up:
            self.state = self._watch.state()
        return (self.summary.records, self.state) != old_state

    def freeze(self) -> RunSource:
        """Freeze or resume the display; if the run is over, replay it instead."""
        if self.is_over:
            return self.replay()
        self.is_frozen = not self.is_frozen
        return self


class Replay(RunSource):
    """A finished run, shown as a live screen would have shown it at a moment of the replay."""

    is_live = False

    def __init__(self, run_dir: Path) -> None:
        super().__init__(run_dir, Watch(run_dir))
        self.summary = RunSummary()  # of the moment that is replayed
        self.is_playing = True
        self.speed = 1.0
        # All records but the points of series, which are cut instead. Each has its writer,
        # which is the process that wrote it.
        self._items: list[tuple[str, Item]] = []
        self._folded_count = 0  # of the items, those that the summary has
        self._position = 0  # nanoseconds since the first record
        self._polled_s = time.monotonic()

    @property
    def whole_s(self) -> float:
        """The duration of the run."""
        return self._watch.summary.elapsed_s

    @property
    def elapsed_s(self) -> float:
        return self._position / 1e9

    @property
    def is_over(self) -> bool:
        return self.is_caught_up and self.elapsed_s >= self.whole_s

    @property
    def place(self) -> str:
        return "replay"

    def read(self) -> bool:
        """Load the record in portions and return False; then move on by the time that passed.

        Return False if the replay is paused or at its end.
        """
        if not self.is_caught_up:
            self._load()
            return False
        now_s = time.monotonic()
        passed_s = now_s - self._polled_s
        self._polled_s = now_s
        if not self.is_playing or self.is_over:
            return False
        self._go_to(self._position + round(passed_s * self.speed * 1e9))
        return True

    def freeze(self) -> RunSource:
        self.is_playing = not self.is_playing
        return self

    def speed_up(self, factor: float) -> RunSource:
        slowest, fastest = _SPEEDS
        self.speed = min(max(self.speed * factor, slowest), fastest)
        return self

    def seek(self, share: float) -> RunSource:
        """Move by a share of the run; do nothing while the record is being read."""
        if self.is_caught_up:
            self._go_to(self._position + round(share * self.whole_s * 1e9))
            self._shown_s = 0.0
            self.has_news = True
        return self

    def _load(self) -> None:
        """Read the record once more, in portions, and keep everything but the points of series."""
        deadline = time.monotonic() + _PORTION_S
        while time.monotonic() < deadline:
            items = self._watch.refresh()
            if not items:
                self._items.sort(key=_time_of)
                self.speed = max(1.0, self.whole_s / _WHOLE_S)
                self.is_caught_up = True
                note_arms(self.arms, self._watch.summary)
                self._polled_s = time.monotonic()
                self._go_to(0)
                return
            for writer, item in items:
                if not isinstance(item, events.Logged | events.BlockLogged | events.Sampled):
                    self._items.append((writer, item))

    def _go_to(self, position: int) -> None:
        """Show the run at a position. Backwards, the summary is made again from the start."""
        whole = self._watch.summary
        position = min(max(position, 0), whole.last_t - whole.first_t)
        if position < self._position or not self._folded_count:
            self.summary = RunSummary(first_t=whole.first_t)
            self._folded_count = 0
        self._position = position
        moment = whole.first_t + position
        end = bisect_right(self._items, moment, key=_time_of)
        fold(self._items[self._folded_count : end], self.summary)
        self._folded_count = end
        self.summary.series = dict(_cut_all(whole.series.items(), moment))
        self.summary.resources = dict(_cut_all(whole.resources.items(), moment))
        self.summary.gpu_states = [state for state in whole.gpu_states if state.t <= moment]
        self.state = self.summary.state


def note_arms(arms: list[str], summary: RunSummary) -> None:
    """Append new arms to a list. The arms in the list keep their places."""
    current = {arm for _, arm, _ in summary.series}
    current.update(arm for _, arm in summary.blocks)
    for _, race in summary.races:
        current.update(race.arms)
    # Sorting thousands of arms takes longer than this check.
    if current <= {*arms, ""}:
        return
    old_arms = set(arms)
    for arm in summary.arms_in_order():
        if arm not in old_arms:
            arms.append(arm)


def _time_of(item: tuple[str, Item]) -> int:
    return getattr(item[1], "t", 0)


def _cut_all(series: Iterable[tuple[Key, Series]], t: int) -> Iterator[tuple[Key, Series]]:
    """Yield each series as it was at a moment, with its key, unless it had no point yet."""
    for key, whole in series:
        part = cut(whole, t)
        if part.count:
            yield key, part


def cut(series: Series, t: int) -> Series:
    """Return a series as it was at a moment.

    A bucket, which merges several points, counts from its first point on.
    """
    if t >= series.last_t:
        return series
    end = bisect_right(series.times, t)
    bad = [point for point in series.bad if point.t <= t]
    part = Series(
        name=series.name,
        arm=series.arm,
        writer=series.writer,
        steps=list(series.steps[:end]),
        times=list(series.times[:end]),
        lows=list(series.lows[:end]),
        highs=list(series.highs[:end]),
        bad=bad,
        bad_count=len(bad),
        count=end + len(bad),
        gaps=[gap for gap in series.gaps if gap <= t],
    )
    if end:
        part.last = series.highs[end - 1]
        part.last_step = series.steps[end - 1]
        part.last_t = series.times[end - 1]
    return part
