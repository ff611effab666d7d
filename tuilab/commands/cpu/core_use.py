"""Read how long the processes of a command ran on cores, and how long they waited for a core.

The kernel counts both for each thread, in /proc/PID/task/TID/schedstat: nanoseconds on a core, and
nanoseconds in which the thread could run but had no core, because others used it. The time in which
a thread sleeps, or waits for a disk or a lock, is in neither.
"""

import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tuilab.record import presence

# After a reading, the next one waits for this many times the CPU time that the last one took. So
# readings use at most 1 % of a core.
_COST = 100
_MOST_THREADS = 10_000  # that are read; others are ignored
_HIGH_PRESSURE = 50.0  # percent of ten seconds in which some process waited for a core

ThreadKey = tuple[int, int]  # the ids of a process and of a thread
Times = tuple[int, int]  # nanoseconds on a core, and nanoseconds without one


class Threads(NamedTuple):
    """How long the threads of some processes ran and waited together, in seconds."""

    ran_s: float = 0.0
    waited_s: float = 0.0


class CoreUse:
    """The core time of a process and its descendants, since they began."""

    def __init__(
        self,
        pid: int,
        clock: Callable[[], float] = time.monotonic,
        proc: Path = Path("/proc"),
        own_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._pid = pid
        self._clock = clock
        # A reading costs CPU time. On a busy machine, it takes long but costs little.
        self._own_clock = own_clock
        self._proc = proc
        self._times: dict[ThreadKey, Times] = {}  # by the last reading
        self._next_at = 0.0
        self.is_known = False  # whether the kernel has these files
        self.threads = Threads()

    def read(self) -> bool:
        """Read the times of all threads, add what is new to `threads`, and return True.

        Return False if the last reading took long and was just now, or if /proc cannot be read.
        """
        began = self._clock()
        if began < self._next_at:
            return False
        own_began_s = self._own_clock()
        try:
            pids = [self._pid, *presence.descendants(self._pid)]
        except OSError:
            return False
        previous = self._times
        self._times = {}
        for pid in pids:
            self._read_process(pid, previous)
        self._next_at = began + _COST * (self._own_clock() - own_began_s)
        return True

    def _read_process(self, pid: int, previous: Mapping[ThreadKey, Times]) -> None:
        """Read the threads of a process; do nothing if it has ended."""
        with suppress(OSError):
            for thread in os.listdir(self._proc / str(pid) / "task"):
                if thread.isdecimal() and len(self._times) < _MOST_THREADS:
                    self._read_thread((pid, int(thread)), previous)

    def _read_thread(self, key: ThreadKey, previous: Mapping[ThreadKey, Times]) -> None:
        """Add the time of a thread since the previous reading to the sum of all threads.

        Nothing if the thread has ended, or if the kernel does not count its times.
        """
        with suppress(OSError, ValueError, IndexError):
            pid, thread = key
            fields = (self._proc / f"{pid}/task/{thread}/schedstat").read_text().split()
            ran_ns = int(fields[0])
            waited_ns = int(fields[1])
            previous_ran_ns, previous_waited_ns = previous.get(key, (0, 0))
            if ran_ns < previous_ran_ns:  # another thread has this number by now
                previous_ran_ns = 0
                previous_waited_ns = 0
            self._times[key] = (ran_ns, waited_ns)
            ran_s = self.threads.ran_s + (ran_ns - previous_ran_ns) / 1e9
            waited_s = self.threads.waited_s + max(waited_ns - previous_waited_ns, 0) / 1e9
            self.threads = Threads(ran_s, waited_s)
            self.is_known = True


def has_high_pressure(proc: Path = Path("/proc")) -> bool:
    """Return whether some process of the machine waited for a core most of the last ten seconds.

    False if that is not known.
    """
    with suppress(OSError, ValueError, IndexError):
        fields = (proc / "pressure/cpu").read_text().split()
        return float(fields[1].removeprefix("avg10=")) > _HIGH_PRESSURE
    return False


def granted_cores(usable: int) -> int:
    """Return how many of the usable cores the quota of the control group grants.

    The kernel suspends processes that run beyond the quota.
    """
    from tuilab.probes.cpu import cpu_facts  # imported here: only the advice at the end needs it

    quota = cpu_facts().get("quota_cores")
    if not isinstance(quota, (int, float)) or not quota > 0:
        return usable
    return min(usable, max(math.ceil(quota), 1))
