"""Compute the CPU time and the waiting time of steps from readings that their process marks."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

# A step is disturbed if its thread was kept off a core for more than this share of the step.
# lab/races/sensors.py uses the same share for blocks.
_OFF_CORE_SHARE = 0.1
_MOST_WAITS = 2**32  # a mark has the count modulo this number
_LONGEST_NS = 2**62  # so that a sum still fits into a record


class CoreTimeReading(NamedTuple):
    """What a process and its stepping thread had used when a step ended.

    The times are in nanoseconds since the process or the thread began.
    """

    thread_ns: int
    process_ns: int
    waits: int  # how often the thread gave its core away by itself: the last 32 bits
    delay_ns: float | None  # in which the thread wanted a core and had none; None if not read


class CoreTime(NamedTuple):
    """What the steps that one reading covers used together, in nanoseconds."""

    steps: int
    wall_ns: int
    thread_ns: int
    process_ns: int
    delayed_ns: int  # in which the thread wanted a core and had none
    waited_ns: int  # in which the thread needed no core

    @property
    def is_disturbed(self) -> bool:
        return self.delayed_ns > _OFF_CORE_SHARE * self.wall_ns


class CoreTimeReadings:
    """Turns readings at the ends of steps into the CPU time between them."""

    def __init__(self) -> None:
        self._last: CoreTimeReading | None = None
        self._ended = 0  # when the step of the last reading ended
        self._steps = 0  # since that reading
        self._delay_ns: float | None = None  # the last delay that was read
        # The delays since then, of steps in which the thread never waited by itself.
        self._known_ns = 0

    def take(self, ended: int, reading: CoreTimeReading | None) -> CoreTime | None:
        """Take the end of a step; return what was used since the previous reading.

        None if this step has no reading, if there is no earlier reading, or if the reading is
        impossible.
        """
        self._steps += 1
        if reading is None:
            return None
        used = self._since(ended, reading)
        self._last = reading
        self._ended = ended
        self._steps = 0
        return used

    def _since(self, ended: int, reading: CoreTimeReading) -> CoreTime | None:
        """Return what was used since the last reading; None if that is unknown or impossible.

        Time off a core is a delay if the thread never gave its core away by itself since then.
        """
        last = self._last
        if last is None:
            self._delay_ns = reading.delay_ns
            self._known_ns = 0
            return None
        wall_ns = ended - self._ended
        thread_ns = reading.thread_ns - last.thread_ns
        process_ns = reading.process_ns - last.process_ns
        # Only forged marks have other times.
        if not all(0 <= ns < _LONGEST_NS for ns in (wall_ns, thread_ns, process_ns)):
            return None
        off_core_ns = max(wall_ns - thread_ns, 0)
        if (reading.waits - last.waits) % _MOST_WAITS == 0:
            self._known_ns += off_core_ns
            delayed_ns = off_core_ns
        else:
            delayed_ns = self._delayed_ns(reading, off_core_ns)
        waited_ns = off_core_ns - delayed_ns
        return CoreTime(self._steps, wall_ns, thread_ns, process_ns, delayed_ns, waited_ns)

    def _delayed_ns(self, reading: CoreTimeReading, off_core_ns: int) -> int:
        """Return how much of the time off a core was a delay, if the thread also waited by itself.

        If the kernel does not count delays, all of the time counts as waiting.
        """
        if reading.delay_ns is None:
            return 0
        previous_ns = self._delay_ns
        known_ns = self._known_ns
        self._delay_ns = reading.delay_ns
        self._known_ns = 0
        if previous_ns is None:
            return 0
        delayed_ns = round(reading.delay_ns - previous_ns) - known_ns
        return min(max(delayed_ns, 0), off_core_ns)


class CoreTimes:
    """The CPU times of all steps of a process, each by the number of the step that it ends with."""

    def __init__(self) -> None:
        self._ends = array("q")  # how many steps had ended at each reading
        self._columns = {name: array("q") for name in CoreTime._fields}

    def add(self, end: int, used: CoreTime) -> None:
        """Add what the steps up to number `end` used; steps count from 1."""
        self._ends.append(end)
        for name, value in used._asdict().items():
            self._columns[name].append(value)

    def thread_s(self, count: int) -> list[float] | None:
        """Return the seconds of CPU time of each of `count` steps; None if some were not read.

        Each step before the first reading gets the time of the steps after it.
        """
        thread_seconds: list[float] = []
        columns = (self._ends, self._columns["steps"], self._columns["thread_ns"])
        for end, steps, thread_ns in zip(*columns, strict=True):
            step_s = thread_ns / steps / 1e9
            is_first = not thread_seconds
            if end - steps > len(thread_seconds) and not is_first:
                return None
            thread_seconds += [step_s] * (end - len(thread_seconds))
        return thread_seconds if len(thread_seconds) == count else None

    def since(self, first: int) -> list[CoreTime]:
        """Return what the steps from number `first` on used; steps count from 0.

        A reading that also covers earlier steps is left out.
        """
        times = []
        for end, *values in zip(self._ends, *self._columns.values(), strict=True):
            used = CoreTime(*values)
            if end - used.steps >= first:
                times.append(used)
        return times


def total(times: Sequence[CoreTime]) -> CoreTime | None:
    """Return the sum of several times; None if there are none."""
    if not times:
        return None
    sums = [sum(column) for column in zip(*times, strict=True)]
    return CoreTime(*sums)
