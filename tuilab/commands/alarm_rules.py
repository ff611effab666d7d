"""What whoever trains wants to know at once: a stall, a loss that is no number, memory that creeps up, a rank that is slow.

Each of these is told what happens, with the time, and answers with a sentence or with nothing. What ordinary training does is
no alarm: the first steps, an evaluation, a checkpoint, a box that is busy.
"""

import math
from collections.abc import Collection, Mapping
from itertools import pairwise
from statistics import median

from tuilab.commands.steps import Step
from tuilab.text.display import join
from tuilab.text.words import seconds, size

_USUAL_OF = 5  # steps, before a usual one is known
_STALL_TIMES, _STALL_S = 10, 5.0
_BUSY_S = 60.0  # without a step, of processes that work: an evaluation may be long
_LONGER = 3  # than the longest pause so far
_SPREAD = 240  # readings of memory, over the whole time
_WARM = 4  # the share of them that is warm-up: one in four
_BINS = 6
_LEAST_READINGS, _LEAST_STEPS = (
    180,
    50,
)  # one a second: an epoch in which data are kept in memory is often over by then
_LEAST_BYTES, _LEAST_SHARE = 64 << 20, 0.05
_LEVELS_OFF = (
    0.5  # of the growth before: what grows more slowly than that is on its way to level off
)
_RANK_STEPS = 50
_SLOWER = 1.3  # times as much work as the others
_SHARE_OF_STEP = 0.1
_IN_A_ROW = 3


class Stall:
    """Whether a process that lives makes no step any more: none for ten times as long as usual, and nothing else either."""

    def __init__(self) -> None:
        self._usual_s: list[float] = []
        self._left_ns: int | None = None  # when its script ended
        self._stepped_at: float | None = None
        self._heard_at = 0.0
        self._longest_s = 0.0  # pause between two steps so far
        self._is_told = False

    def step(self, now_s: float, steps: Collection[Step]) -> str:
        """Take the steps that came; tell that they go on after a stall."""
        if self._left_ns is not None and any(step.ended > self._left_ns for step in steps):
            self._left_ns = None  # the main thread has ended, but other threads still train
        durations_s = [(step.took_ns or 0) / 1e9 for step in steps if step.took_ns]
        self._usual_s = [*self._usual_s, *durations_s][-1000:]
        paused_s = now_s - self._stepped_at if self._stepped_at is not None else 0.0
        self._longest_s = max([self._longest_s, *durations_s])
        self._stepped_at = self._heard_at = now_s
        was_told, self._is_told = self._is_told, False
        return f"steps continue, after {seconds(paused_s)} without one" if was_told else ""

    def hear(self, now_s: float) -> None:
        """Take note that something else was marked or printed: it is not stuck."""
        self._heard_at = now_s

    def leave(self, at_ns: int) -> None:
        """Note when the script ended: after that a missing step is no stall."""
        self._left_ns = at_ns

    def look(self, now_s: float, *, is_busy: bool, lacks_core: bool = False) -> str:
        """Return that the process stalls, once for each stall.

        A process is busy if it works, and also if it could run but lacks a core.
        """
        if self._stepped_at is None or self._is_told or not self.is_near(now_s):
            return ""
        silent_s, usual_s = now_s - max(self._stepped_at, self._heard_at), median(self._usual_s)
        if silent_s < self._patience(usual_s) or (is_busy and silent_s < _BUSY_S):
            return ""
        self._is_told = True
        does = "its processes are working" if is_busy else "its processes are waiting"
        if lacks_core:
            does = "its processes are waiting for a core"
        return (
            f"no step for {seconds(now_s - self._stepped_at)} (a step usually takes"
            f" {seconds(usual_s)}); {does}"
        )

    def is_near(self, now_s: float) -> bool:
        """Say whether there may be a stall, so that it is worth a look at what the processes do."""
        if self._left_ns is not None or self._stepped_at is None:
            return False
        return len(self._usual_s) >= _USUAL_OF and now_s - self._stepped_at >= _STALL_S

    def _patience(self, usual_s: float) -> float:
        return max(_STALL_S, _STALL_TIMES * usual_s, _LONGER * self._longest_s)


class NotFinite:
    """The first root of a backward that is no number."""

    def __init__(self) -> None:
        self._is_told = False

    def look(self, name: str, number: int, value: float) -> str:
        if self._is_told or math.isfinite(value):
            return ""
        self._is_told = True
        return (
            f"{name} is {'NaN' if math.isnan(value) else 'Inf'} for the first time, in step"
            f" {number}"
        )


class Creep:
    """Whether memory grows and grows, and does not level off: by medians of stretches of the time after the warm-up."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._readings: list[tuple[int, float]] = []  # step, bytes: thinned out evenly
        self._every = 1
        self._count = 0
        self._is_told = False

    def read(self, step: int, held: float) -> str:
        """Take a reading, and return that it creeps up, once."""
        self._count += 1
        if self._count % self._every:
            return ""
        self._readings.append((step, held))
        if len(self._readings) > _SPREAD:
            del self._readings[1::2]
            self._every *= 2
        return "" if self._is_told else self._look()

    def _look(self) -> str:
        later = self._readings[len(self._readings) // _WARM :]
        steps = later[-1][0] - later[0][0]
        if self._count < _LEAST_READINGS or len(later) < 2 * _BINS or steps < _LEAST_STEPS:
            return ""
        width = len(later) / _BINS
        levels = [
            median(held for _, held in later[int(index * width) : int((index + 1) * width)])
            for index in range(_BINS)
        ]
        grown, early = levels[-1] - levels[0], levels[_BINS // 2 - 1] - levels[0]
        late = levels[-1] - levels[_BINS // 2]
        is_rising = all(upper > lower for lower, upper in pairwise(levels))
        if (
            not is_rising
            or late < _LEVELS_OFF * early
            or grown < max(_LEAST_BYTES, _LEAST_SHARE * levels[0])
        ):
            return ""
        self._is_told = True
        began, ended = levels[0], later[-1][1]
        return f"{self._what} keeps growing, from {size(began)} to {size(ended)} in {steps} steps"


class SlowRank:
    """Whether one rank has more to do than the others, who wait for it in their backwards."""

    def __init__(self) -> None:
        self._seen: tuple[str, int] = "", 0
        self._told: set[str] = set()

    def look(self, ranks: Mapping[str, Collection[Step]]) -> str:
        """Take the last steps of each rank, all of them new since the last look; tell which is slow, once for each."""
        own_s = {name: _own_s(steps) for name, steps in ranks.items() if len(steps) >= _RANK_STEPS}
        if len(own_s) < len(ranks) or len(own_s) < 2:
            return ""
        slowest = max(own_s, key=lambda name: own_s[name])
        others_s = median(took_s for name, took_s in own_s.items() if name != slowest)
        step_s = median((step.took_ns or 0) / 1e9 for step in ranks[slowest])
        is_slow = (
            own_s[slowest] > _SLOWER * others_s
            and own_s[slowest] - others_s > _SHARE_OF_STEP * step_s
        )
        previous, count = self._seen
        self._seen = (slowest, count + 1 if previous == slowest else 1) if is_slow else ("", 0)
        if self._seen[1] < _IN_A_ROW or slowest in self._told:
            return ""
        self._told.add(slowest)
        waiting = (
            ("the other", "which waits") if len(own_s) == 2 else ("the others", "and they wait")
        )
        more = (
            f"{seconds(own_s[slowest])} of a step before its backward, {waiting[0]}"
            f" {seconds(others_s)}"
        )
        return f"{slowest} is slow: it takes {more}, {waiting[1]} for it" if others_s else ""


def _own_s(steps: Collection[Step]) -> float:
    """Return what a rank does by itself in a step: all but the backward, in which ranks wait for each other."""
    return median(max((step.took_ns or 0) - step.backward_ns, 0) for step in steps) / 1e9


def in_one(names: Collection[str], text: str) -> tuple[str, str]:
    """Return whose an alert is, and its text: one for all where it is the same of several."""
    return (next(iter(names)), text) if len(names) == 1 else ("", f"{join([*names])}: {text}")
