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

# A stall
_USUAL_OF = 5  # steps, before the usual time of a step is known
_USUAL_KEPT = 1000  # times of steps, from which the usual time is computed
_STALL_TIMES = 10  # a pause is a stall from so many times the usual time of a step on
_STALL_S = 5.0  # a shorter pause is no stall
_BUSY_S = 60.0  # without a step, if the processes work: an evaluation may be long
_LONGER = 3  # times the longest pause so far
# Growing memory
_SPREAD = 240  # readings of memory that are kept, spread over the whole time
_WARM = 4  # the first quarter of the readings is the warm-up
_BINS = 6  # stretches of the time after the warm-up, whose medians are compared
# There is one reading a second: an epoch that keeps its data in memory is often over by then.
_LEAST_READINGS = 180
_LEAST_STEPS = 50  # between the first and the last reading
_LEAST_BYTES = 64 << 20  # of growth
_LEAST_SHARE = 0.05  # of the memory after the warm-up
_LEVELS_OFF = 0.5  # of the earlier growth: memory that grows more slowly is levelling off
# A slow rank
_RANK_STEPS = 50  # of each rank, for a comparison
_SLOWER = 1.3  # times as much work as the other ranks
_SHARE_OF_STEP = 0.1  # by which the work of the ranks must differ at least
_IN_A_ROW = 3  # comparisons with the same result


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
        """Take the new steps; after a reported stall, return a sentence that steps continue.

        Otherwise the result is an empty string.
        """
        if self._left_ns is not None and any(step.ended > self._left_ns for step in steps):
            self._left_ns = None  # the main thread has ended, but other threads still train
        durations_s = []
        for step in steps:
            took_ns = step.took_ns
            if took_ns:
                durations_s.append(took_ns / 1e9)
        self._usual_s = [*self._usual_s, *durations_s][-_USUAL_KEPT:]
        self._longest_s = max([self._longest_s, *durations_s])
        paused_s = 0.0
        if self._stepped_at is not None:
            paused_s = now_s - self._stepped_at
        self._stepped_at = now_s
        self._heard_at = now_s
        if not self._is_told:
            return ""
        self._is_told = False
        return f"steps continue, after {seconds(paused_s)} without one"

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
        silent_s = now_s - max(self._stepped_at, self._heard_at)
        usual_s = median(self._usual_s)
        if silent_s < self._patience(usual_s):
            return ""
        if is_busy and silent_s < _BUSY_S:
            return ""
        self._is_told = True
        if lacks_core:
            activity = "its processes are waiting for a core"
        elif is_busy:
            activity = "its processes are working"
        else:
            activity = "its processes are waiting"
        no_step = f"no step for {seconds(now_s - self._stepped_at)}"
        return f"{no_step} (a step usually takes {seconds(usual_s)}); {activity}"

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

    def look(self, name: str, number: int, value: float, *, can_skip: bool = False) -> str:
        """Return a sentence about the first value that is not finite; else an empty string.

        `number` is the number of its step. `can_skip` says whether GradScaler has skipped a step.
        """
        if self._is_told or math.isfinite(value):
            return ""
        self._is_told = True
        kind = "NaN" if math.isnan(value) else "Inf"
        sentence = f"{name} is {kind} for the first time, in step {number}"
        if can_skip:
            sentence += (
                "; GradScaler skips steps that overflow,"
                " so only many of them in a row are a problem"
            )
        return sentence


class Creep:
    """Detect memory that keeps growing and does not level off.

    The time after the warm-up is cut into stretches, and the medians of the stretches are compared.
    """

    def __init__(self, memory: str) -> None:
        self._memory = memory  # its name in the alert
        self._readings: list[tuple[int, float]] = []  # step and bytes, thinned out evenly
        self._every = 1
        self._count = 0
        self._is_told = False

    def read(self, step: int, used_bytes: float) -> str:
        """Take a reading; return a sentence if the memory keeps growing, only once."""
        self._count += 1
        if self._count % self._every:
            return ""
        self._readings.append((step, used_bytes))
        if len(self._readings) > _SPREAD:
            del self._readings[1::2]
            self._every *= 2
        return "" if self._is_told else self._check()

    def _check(self) -> str:
        """Return a sentence if the memory keeps growing; empty if not, or if it is too early.

        After that sentence, no other one follows.
        """
        later = self._readings[len(self._readings) // _WARM :]
        steps = later[-1][0] - later[0][0]
        if self._count < _LEAST_READINGS or len(later) < 2 * _BINS or steps < _LEAST_STEPS:
            return ""
        width = len(later) / _BINS
        levels = []
        for index in range(_BINS):
            readings = later[int(index * width) : int((index + 1) * width)]
            levels.append(median(used_bytes for _, used_bytes in readings))
        is_rising = all(upper > lower for lower, upper in pairwise(levels))
        if not is_rising:
            return ""
        grown = levels[-1] - levels[0]
        early = levels[_BINS // 2 - 1] - levels[0]
        late = levels[-1] - levels[_BINS // 2]
        is_levelling_off = late < _LEVELS_OFF * early
        if is_levelling_off or grown < max(_LEAST_BYTES, _LEAST_SHARE * levels[0]):
            return ""
        self._is_told = True
        growth = f"from {size(levels[0])} to {size(later[-1][1])} in {steps} steps"
        return f"{self._memory} keeps growing, {growth}"


class SlowRank:
    """Detect a rank that has more work than the others, which wait for it in their backwards."""

    def __init__(self) -> None:
        self._suspect = ""  # the slow rank of the last comparison
        self._times_in_a_row = 0  # that it was the slow rank
        self._told: set[str] = set()

    def look(self, ranks: Mapping[str, Collection[Step]]) -> str:
        """Take the last steps of each rank; return a sentence about a slow rank, once for each.

        A rank is slow if it was the slowest in several comparisons in a row. The caller passes only
        steps that are new since the last call, and whose parts were timed. The result is empty if a
        rank has too few of them.
        """
        own_s: dict[str, float] = {}
        for name, steps in ranks.items():
            if len(steps) >= _RANK_STEPS:
                own_s[name] = _own_s(steps)
        if len(own_s) < len(ranks) or len(own_s) < 2:
            return ""
        slowest = max(own_s, key=lambda name: own_s[name])
        slowest_s = own_s[slowest]
        others_s = median(rank_s for name, rank_s in own_s.items() if name != slowest)
        step_s = median((step.took_ns or 0) / 1e9 for step in ranks[slowest])
        is_slow = slowest_s > _SLOWER * others_s and slowest_s - others_s > _SHARE_OF_STEP * step_s
        if not is_slow:
            self._suspect = ""
            self._times_in_a_row = 0
            return ""
        if slowest != self._suspect:
            self._suspect = slowest
            self._times_in_a_row = 0
        self._times_in_a_row += 1
        if self._times_in_a_row < _IN_A_ROW or slowest in self._told:
            return ""
        self._told.add(slowest)
        if not others_s:
            return ""
        takes = f"{slowest} is slow: it takes {seconds(slowest_s)} of a step before its backward"
        if len(own_s) == 2:
            return f"{takes}, the other {seconds(others_s)}, which waits for it"
        return f"{takes}, the others {seconds(others_s)}, and they wait for it"


def _own_s(steps: Collection[Step]) -> float:
    """Return how many seconds of a step are a rank's own work.

    The backward does not count, because ranks wait for each other in it.
    """
    own_ns = [max((step.took_ns or 0) - step.backward_ns, 0) for step in steps]
    return median(own_ns) / 1e9


def in_one(names: Collection[str], text: str) -> tuple[str, str]:
    """Return the arm of an alert, and its text.

    `names` are the arms that have the alert: the labels of their curves. If several arms have it,
    they share one alert: its arm is empty, and its text names them.
    """
    if len(names) == 1:
        return next(iter(names)), text
    return "", f"{join([*names])}: {text}"
