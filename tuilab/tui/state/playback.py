"""A run that is over, played again: what the Run screen shows is what it would have shown at that moment."""

import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from tuilab.record import events
from tuilab.record.folding.fold import fold
from tuilab.record.journal.lines import Item
from tuilab.record.live_run import Watch
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.tui.state.following import note_arms

Key = TypeVar("Key")
_PORTION_S = 0.05
_WHOLE_S = 30.0  # a longer run is played faster, so that it takes no longer than this


class Playback:
    """Stands in for `Following`: its summary is that of the moment that is played."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.is_caught_up = False
        self.is_playing = True
        self.speed = 1.0
        self.arms: list[str] = []
        self.summary = RunSummary()
        self._watch = Watch(run_dir)
        self._items: list[tuple[str, Item]] = []  # all but the points of series, which are cut instead
        self._folded = 0
        self._at = 0  # nanoseconds since the first record
        self._looked = time.monotonic()

    @property
    def state(self) -> str:
        """The state of the run at the moment that is played."""
        return self.summary.state

    @property
    def bytes_read(self) -> tuple[int, int]:
        """How much of the record was read, of how much."""
        return self._watch.bytes_read

    @property
    def whole_s(self) -> float:
        """How long the run took."""
        return self._watch.summary.elapsed_s

    @property
    def elapsed_s(self) -> float:
        return self._at / 1e9

    @property
    def is_over(self) -> bool:
        """Whether the end is reached."""
        return self.is_caught_up and self.elapsed_s >= self.whole_s

    @property
    def age_s(self) -> float:
        return 0.0

    def read(self) -> bool:
        """Go on to the present moment of the playback; return whether anything changed."""
        if not self.is_caught_up:
            self._load()
            return False
        now = time.monotonic()
        passed_s, self._looked = now - self._looked, now
        if not self.is_playing or self.is_over:
            return False
        self._go_to(self._at + round(passed_s * self.speed * 1e9))
        return True

    def seek(self, share: float) -> None:
        """Go on or back by a share of the whole."""
        self._go_to(self._at + round(share * self.whole_s * 1e9))

    def close(self) -> None:
        self._watch.close()

    def _load(self) -> None:
        """Read the record once more, in portions, and keep everything but the points of series."""
        deadline = time.monotonic() + _PORTION_S
        while time.monotonic() < deadline:
            items = self._watch.refresh()
            if not items:
                self._items.sort(key=lambda pair: getattr(pair[1], "t", 0))
                self.speed = max(1.0, self.whole_s / _WHOLE_S)
                self.is_caught_up = True
                note_arms(self.arms, self._watch.summary)
                self._looked = time.monotonic()
                self._go_to(0)
                return
            self._items += [pair for pair in items if not isinstance(pair[1], events.Logged | events.Sampled)]

    def _go_to(self, at: int) -> None:
        whole = self._watch.summary
        at = min(max(at, 0), whole.last_t - whole.first_t)
        if at < self._at or not self._folded:
            self.summary, self._folded = RunSummary(first_t=whole.first_t), 0
        self._at = at
        moment = whole.first_t + at
        end = bisect_right(self._items, moment, key=lambda pair: getattr(pair[1], "t", 0))
        fold(self._items[self._folded : end], self.summary)
        self._folded = end
        self.summary.series = dict(_cut_all(whole.series.items(), moment))
        self.summary.resources = dict(_cut_all(whole.resources.items(), moment))
        self.summary.gpu_states = [state for state in whole.gpu_states if state.t <= moment]


def _cut_all(series: Iterable[tuple[Key, Series]], t: int) -> Iterator[tuple[Key, Series]]:
    for key, one in series:
        part = cut(one, t)
        if part.count:
            yield key, part


def cut(series: Series, t: int) -> Series:
    """Return a series as it was at a moment; a bucket counts from its first point on."""
    if t >= series.last_t:
        return series
    end = bisect_right(series.times, t)
    bad = [one for one in series.bad if one.t <= t]
    part = Series(
        series.name,
        series.arm,
        series.writer,
        list(series.steps[:end]),
        list(series.times[:end]),
        list(series.lows[:end]),
        list(series.highs[:end]),
        bad,
        len(bad),
        end + len(bad),
        gaps=[gap for gap in series.gaps if gap <= t],
    )
    if end:
        part.last, part.last_step, part.last_t = series.highs[end - 1], series.steps[end - 1], series.times[end - 1]
    return part
