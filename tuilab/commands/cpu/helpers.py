"""Read the CPU time of the descendants of a process that steps, such as DataLoader workers.

The times are read now and then.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress

from tuilab.record import presence

_EVERY_S = 0.25  # between two readings
_MOST = 1000  # processes that are remembered
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Helpers:
    """The CPU time that all descendants of a process have used since the first reading.

    What a descendant uses after its last reading is not known.
    """

    def __init__(self, pid: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._pid = pid
        self._clock = clock
        self._next_at = clock()
        self._read_at = self._next_at
        self._began_at: float | None = None  # time of the first reading
        # By pid and start time of a process: the ticks that it had used before the first reading,
        # and those that it had used at its last one.
        self._first: dict[tuple[int, str], int] = {}
        self._last: dict[tuple[int, str], int] = {}

    def look(self) -> None:
        """Read the CPU time of the descendants, if the last reading was _EVERY_S ago."""
        now_s = self._clock()
        if now_s < self._next_at:
            return
        is_first = self._began_at is None
        if self._began_at is None:
            self._began_at = now_s
        self._read_at = now_s
        self._next_at = now_s + _EVERY_S
        with suppress(OSError):
            for pid in presence.descendants(self._pid):
                self._look_at(pid, is_first=is_first)

    def _look_at(self, pid: int, *, is_first: bool) -> None:
        """Note how many ticks of CPU time a process has used.

        Do nothing if it has ended, or if _MOST other processes are remembered.
        """
        with suppress(OSError):
            fields = presence.stat_fields(pid)
            if fields is None:
                return
            key = (pid, fields[19])  # the start time
            if key not in self._last and len(self._last) >= _MOST:
                return
            used_ticks = int(fields[11]) + int(fields[12])  # user time and system time
            # A process that began after the first reading had used nothing at the first reading.
            self._first.setdefault(key, used_ticks if is_first else 0)
            self._last[key] = used_ticks

    @property
    def cores(self) -> float:
        """How many cores these processes used on average; 0 if there were none."""
        if self._began_at is None:
            return 0.0
        elapsed_s = self._read_at - self._began_at
        if elapsed_s <= 0:
            return 0.0
        ticks = sum(used_ticks - self._first[key] for key, used_ticks in self._last.items())
        return ticks / _TICKS_PER_S / elapsed_s
