"""Decide what a user wants to know at once: a stall, a NaN loss, growing memory, a slow rank.

Each rule takes what happens, with its time or its step, and returns a sentence or an empty string.
Ordinary events of a training raise no alarm: the first steps, an evaluation, a checkpoint, a busy
machine.
"""

import math
from collections.abc import Collection, Mapping
from itertools import pairwise
from statistics import median

from tuilab.commands.steps import Step
from tuilab.text.display import join
from tuilab.text.words import seconds, size

_USUAL_OF = 5  # steps, before the usual time of a step is known
_STALL_TIMES, _STALL_S = 10, 5.0
_BUSY_S = 60.0  # without a step, if the processes work: an evaluation may be long
_LONGER = 3  # times the longest pause so far
_SPREAD = 240  # readings of memory that are kept, spread over the whole time
_WARM = 4  # the first quarter of the readings is the warm-up
_BINS = 6
# There is one reading a second: an epoch that keeps its data in memory is often over by then.
_LEAST_READINGS, _LEAST_STEPS = 180, 50
_LEAST_BYTES, _LEAST_SHARE = 64 << 20, 0.05
_LEVELS_OFF = 0.5  # of the earlier growth: memory that grows more slowly is levelling off
_RANK_STEPS = 50
_SLOWER = 1.3  # times as much work as the other ranks
_SHARE_OF_STEP = 0.1
_IN_A_ROW = 3


class Stall:
    """Detect that a living process has stopped making steps.

    The process stalls if it makes no step for at least ten times the usual time of a step, and
    neither marks nor prints anything else in that time.
    """

    def __init__(self) -> None:
        self._usual_s: list[float] = []
        self._left_ns: int | None = None  # when its script ended
        self._stepped_at: float | None = None
        self._heard_at = 0.0
        self._longest_s = 0.0  # pause between two steps so far
        self._is_told = False

    def step(self, now_s: float, steps: Collection[Step]) -> str:
        """Take the new steps; after a reported stall, return a sentence that steps continue."""
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
        """Note that the process marked or printed something else, so it is not stuck."""
        self._heard_at = now_s

    def leave(self, at_ns: int) -> None:
        """Note when the script ended; after that, a missing step is no stall."""
        self._left_ns = at_ns

    def look(self, now_s: float, *, is_busy: bool, lacks_core: bool = False) -> str:
        """Return a sentence if the process stalls, once for each stall.

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
        """Say whether there may be a stall, so that the caller should check the processes."""
        if self._left_ns is not None or self._stepped_at is None:
            return False
        return len(self._usual_s) >= _USUAL_OF and now_s - self._stepped_at >= _STALL_S

    def _patience(self, usual_s: float) -> float:
        return max(_STALL_S, _STALL_TIMES * usual_s, _LONGER * self._longest_s)


class NotFinite:
    """Detect the first root of a backward that is NaN or infinite."""

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
    """Detect memory that keeps growing and does not level off.

    The time after the warm-up is cut into stretches, and the medians of the stretches are compared.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._readings: list[tuple[int, float]] = []  # step and bytes, thinned out evenly
        self._every = 1
        self._count = 0
        self._is_told = False

    def read(self, step: int, held: float) -> str:
        """Take a reading; return a sentence if the memory keeps growing, only once."""
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
        levels = []
        for index in range(_BINS):
            readings = later[int(index * width) : int((index + 1) * width)]
            levels.append(median(held for _, held in readings))
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
    """Detect a rank that has more work than the others, which wait for it in their backwards."""

    def __init__(self) -> None:
        self._seen: tuple[str, int] = "", 0
        self._told: set[str] = set()

    def look(self, ranks: Mapping[str, Collection[Step]]) -> str:
        """Take the last steps of each rank; return a sentence about a slow rank, once for each.

        The caller passes only steps that are new since the last call.
        """
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
    """Return how many seconds of a step are a rank's own work.

    The backward does not count, because ranks wait for each other in it.
    """
    return median(max((step.took_ns or 0) - step.backward_ns, 0) for step in steps) / 1e9


def in_one(names: Collection[str], text: str) -> tuple[str, str]:
    """Return the arm of an alert, and its text.

    If several arms have the same alert, they share one: its arm is empty, and its text names them.
    """
    return (next(iter(names)), text) if len(names) == 1 else ("", f"{join([*names])}: {text}")
