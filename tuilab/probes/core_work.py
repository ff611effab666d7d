"""Measure how long the cores have worked, and how much of that was for other processes."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tuilab.record import presence

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_BUSY_TIMES = (0, 1, 2, 5, 6)  # user, nice, system, irq and softirq in a line of /proc/stat

# Of the usable cores: other processes that use this share may keep a run from a core. tuilab itself
# uses less to watch the run.
OTHERS_SHARE = 0.25


class Work(NamedTuple):
    """The core time that was used up to a moment, in seconds."""

    at: float  # the moment, by the monotonic clock
    used_s: float  # by all processes
    own_s: float  # by our own processes


class Use(NamedTuple):
    """How many of the usable cores were used on average."""

    all: float
    others: float


def usable_cores() -> set[int]:
    """Return the cores that this process, and every process that it starts, may use."""
    return os.sched_getaffinity(0)


def read_work(pid: int, cores: set[int]) -> Work | None:
    """Return the work of some cores, and that of a process and its descendants, up to now.

    None if it is not known.
    """
    used = used_s(cores)
    if used is None:
        return None
    return Work(time.monotonic(), used, worked_s(pid))


def use_between(first: Work | None, last: Work | None) -> Use | None:
    """Return how many cores were used between two readings; None if that is not known."""
    if first is None or last is None or last.at <= first.at:
        return None
    seconds = last.at - first.at
    used = (last.used_s - first.used_s) / seconds
    own = (last.own_s - first.own_s) / seconds
    return Use(used, used - own)


def worked_s(pid: int) -> float:
    """Return how long a process and its descendants have worked, in seconds of a core.

    Descendants that have ended count as well.
    """
    total = 0
    with suppress(OSError):
        for process in [pid, *presence.descendants(pid)]:
            fields = presence.stat_fields(process)
            if fields:
                # Ticks in user mode and in the kernel, of itself and of children it waited for.
                total += sum(int(field) for field in fields[11:15])
    return total / _TICKS_PER_S


def used_s(cores: set[int], proc: Path = Path("/proc")) -> float | None:
    """Return how long some cores have worked for all processes; None if it is not known."""
    total = 0
    with suppress(OSError, ValueError, IndexError):
        for line in (proc / "stat").read_text().splitlines():
            name, *times = line.split()
            if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in cores:
                total += sum(int(times[position]) for position in _BUSY_TIMES)
        return total / _TICKS_PER_S
    return None
