"""What the processes of a run use: read from /proc/PID/stat, ten times cheaper than through psutil."""

import math
import os
import time
from collections.abc import Collection
from typing import NamedTuple

from tuilab.record import presence

WAITING = "tuilab-waits"  # the name of a process that has loaded torch and waits for its turn

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_USS_EVERY_S = 0.9  # with a sample each half second: each second
_USS_SHARE = 0.002  # of a core at most: reading the memory map of a large process is slow


class Usage(NamedTuple):
    """What the processes of a tree use together; those that wait for their turn are told apart, but for the time they took."""

    pids: list[int]
    threads: int
    cpu_percent: float  # of one core, since the last reading; nan where it cannot be known
    rss_bytes: int
    uss_bytes: int | None  # None: not read this time, or not permitted
    waiting_bytes: int  # resident, of those that wait for their turn


class _TreeStat(NamedTuple):
    session: int
    is_alive: bool
    is_waiting: bool
    threads: int
    cpu_s: float  # of the process
    waited_cpu_s: float  # of its children that ended and were waited for
    rss_bytes: int


class Tree:
    """The processes below `top`, without itself, this process and what this process started.

    Where `top` leads a session, as a supervisor does, who else is in it helps it, as the judge, and is none of the run: workers
    have sessions of their own.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        fields = presence.stat_fields(top)
        # so that the first reading is an average since it began
        self._read_at = _now() if fields is None else int(fields[19]) / _TICKS_PER_S
        self._cpu_s = 0.0
        self._uss_due = 0.0

    def read(self) -> Usage:
        """Read the tree once more."""
        stats, cpu_s = self._snapshot()
        now = _now()
        percent = _percent(cpu_s - self._cpu_s, now - self._read_at)
        if not math.isnan(cpu_s):  # else the next reading spans two periods
            self._cpu_s, self._read_at = cpu_s, now
        living = {
            pid: stat for pid, stat in stats.items() if stat.is_alive and stat.session != self._top
        }
        working = {pid: stat for pid, stat in living.items() if not stat.is_waiting}
        return Usage(
            list(working),
            sum(stat.threads for stat in working.values()),
            percent
            if working or not percent
            else math.nan,  # else it is of what only helped the run
            sum(stat.rss_bytes for stat in working.values()),
            self._uss(working),
            sum(stat.rss_bytes for stat in living.values() if stat.is_waiting),
        )

    def _snapshot(self) -> tuple[dict[int, _TreeStat], float]:
        """Return the processes and the CPU time of all that ever ran in the tree.

        The time of a process that was waited for is its parent's from then on. Parents are read first, so that no time is
        counted twice; when a process vanishes meanwhile, its time may have been counted nowhere, and all is read again.
        """
        for _ in range(5):
            top, ourselves = _stat(self._top), {os.getpid(), *presence.descendants(os.getpid())}
            read = {
                pid: _stat(pid) for pid in presence.descendants(self._top) if pid not in ourselves
            }
            stats = {pid: stat for pid, stat in read.items() if stat is not None}
            if len(stats) == len(read) and top is not None:
                return stats, top.waited_cpu_s + sum(
                    stat.cpu_s + stat.waited_cpu_s for stat in stats.values()
                )
        return stats, math.nan

    def _uss(self, pids: Collection[int]) -> int | None:
        """Add up the memory that only these processes have, now and then."""
        if _now() < self._uss_due:
            return None
        began = time.thread_time()
        try:
            return sum(map(_private_bytes, pids))
        except PermissionError:
            return None
        finally:
            self._uss_due = _now() + max(_USS_EVERY_S, (time.thread_time() - began) / _USS_SHARE)


def _now() -> float:
    """Return the clock that start times of processes are on."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _percent(cpu_s: float, wall_s: float) -> float:
    """Return the share of a core; nan when it is impossible, as after a child whose parent did not wait for it."""
    possible_s = (wall_s + 0.1) * (
        os.cpu_count() or 1
    )  # CPU time is counted in ticks, and a little late
    return 100 * cpu_s / wall_s if 0 <= cpu_s <= possible_s and wall_s > 0 else math.nan


def _stat(pid: int) -> _TreeStat | None:
    """Return what /proc/PID/stat tells; None when the process is gone."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            before, _, after = os.read(file, 4096).rpartition(
                b") "
            )  # the name may hold anything, brackets too
        finally:
            os.close(file)
    except OSError:
        return None
    fields = after.split()
    user, system, waited_user, waited_system = (
        int(field) / _TICKS_PER_S for field in fields[11:15]
    )
    is_alive = fields[0] not in (b"Z", b"X")
    is_waiting = before == f"{pid} ({WAITING}".encode()
    return _TreeStat(
        int(fields[3]),
        is_alive,
        is_waiting,
        int(fields[17]),
        user + system,
        waited_user + waited_system,
        int(fields[21]) * _PAGE_BYTES,
    )


def _private_bytes(pid: int) -> int:
    """Return the memory that only this process has; nothing when it has just gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith(b"Private_")) * 1024
    except (FileNotFoundError, ProcessLookupError):
        return 0
