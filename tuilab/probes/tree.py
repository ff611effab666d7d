"""Measure what the processes of a run use.

They are read from /proc/PID/stat, which is ten times cheaper than psutil.
"""

import math
import os
import time
from collections.abc import Collection
from typing import NamedTuple

from tuilab.record import presence

WAITING = "tuilab-waits"  # the name of a process that has loaded torch and waits for its turn

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_USS_PERIOD_S = 0.9  # with a sample each half second, this is once a second
# Reading the memory map of a large process is slow. It may take at most this share of a core.
_USS_SHARE = 0.002


class Usage(NamedTuple):
    """The resources that the processes of a tree use together.

    Processes that wait for their turn count only for `cpu_percent` and `waiting_bytes`.
    """

    pids: list[int]
    threads: int
    cpu_percent: float  # of one core, since the previous reading; nan if it is not known
    rss_bytes: int
    uss_bytes: int | None  # None: not read this time, or not permitted
    waiting_bytes: int  # resident memory of processes that wait for their turn


class _TreeStat(NamedTuple):
    session: int
    is_alive: bool
    is_waiting: bool
    threads: int
    cpu_s: float  # of the process
    waited_cpu_s: float  # of its children that ended and were waited for
    rss_bytes: int


class Tree:
    """The descendants of a process, without this process and its own descendants.

    The top process may lead a session, as a supervisor does. Other processes of this session, such
    as the judge, help it and are not part of the run. Workers have sessions of their own.
    """

    def __init__(self, top: int) -> None:
        """Prepare to read a tree; the first reading counts from the start of the process `top`."""
        self._top = top
        fields = presence.stat_fields(top)
        # The start of the top process, so that the first reading is the average since then.
        self._read_at_s = _now_s()
        if fields is not None:
            self._read_at_s = int(fields[19]) / _TICKS_PER_S  # its start time
        self._cpu_s = 0.0
        self._uss_due_s = 0.0

    def read(self) -> Usage:
        """Read the tree once more, and return what its processes use."""
        stats, cpu_s = self._snapshot()
        now_s = _now_s()
        percent = _percent(cpu_s - self._cpu_s, now_s - self._read_at_s)
        if not math.isnan(cpu_s):  # otherwise the next reading spans two periods
            self._cpu_s = cpu_s
            self._read_at_s = now_s
        pids = []
        threads = 0
        rss_bytes = 0
        waiting_bytes = 0
        for pid, stat in stats.items():
            if not stat.is_alive or stat.session == self._top:
                continue
            if stat.is_waiting:
                waiting_bytes += stat.rss_bytes
                continue
            pids.append(pid)
            threads += stat.threads
            rss_bytes += stat.rss_bytes
        if percent and not pids:
            percent = math.nan  # only processes that help the run used it
        return Usage(pids, threads, percent, rss_bytes, self._uss(pids), waiting_bytes)

    def _snapshot(self) -> tuple[dict[int, _TreeStat], float]:
        """Return the processes, and the CPU time of all processes that ever ran in the tree.

        When a process was waited for, its time becomes that of its parent. Parents are read first,
        so that no time is counted twice. If a process vanishes meanwhile, its time may not have
        been counted at all, and everything is read again.
        """
        stats: dict[int, _TreeStat] = {}
        for _ in range(5):
            top = _stat(self._top)
            own = {os.getpid(), *presence.descendants(os.getpid())}
            is_complete = top is not None
            stats = {}
            for pid in presence.descendants(self._top):
                if pid in own:
                    continue
                stat = _stat(pid)
                if stat is None:
                    is_complete = False
                else:
                    stats[pid] = stat
            if top is not None and is_complete:
                cpu_s = sum(stat.cpu_s + stat.waited_cpu_s for stat in stats.values())
                return stats, top.waited_cpu_s + cpu_s
        return stats, math.nan

    def _uss(self, pids: Collection[int]) -> int | None:
        """Return the memory that only these processes have; None if it is not due or permitted."""
        if _now_s() < self._uss_due_s:
            return None
        began_s = time.thread_time()
        try:
            return sum(_private_bytes(pid) for pid in pids)
        except PermissionError:
            return None
        finally:
            cost_s = time.thread_time() - began_s
            self._uss_due_s = _now_s() + max(_USS_PERIOD_S, cost_s / _USS_SHARE)


def _now_s() -> float:
    """Return the time on the clock of the start times of processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _percent(cpu_s: float, wall_s: float) -> float:
    """Return the share of a core in percent.

    nan if it is impossible, for example after a child whose parent did not wait for it.
    """
    # CPU time is counted in ticks, and a little late.
    possible_s = (wall_s + 0.1) * (os.cpu_count() or 1)
    if 0 <= cpu_s <= possible_s and wall_s > 0:
        return 100 * cpu_s / wall_s
    return math.nan


def _stat(pid: int) -> _TreeStat | None:
    """Return the facts in /proc/PID/stat; None if the process is gone."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            data = os.read(file, 4096)
        finally:
            os.close(file)
    except OSError:
        return None
    pid_and_name, _, rest = data.rpartition(b") ")  # the name may contain anything, brackets too
    fields = rest.split()
    # In user mode and in the kernel: of the process, and of the children it has waited for.
    user_s = int(fields[11]) / _TICKS_PER_S
    system_s = int(fields[12]) / _TICKS_PER_S
    waited_user_s = int(fields[13]) / _TICKS_PER_S
    waited_system_s = int(fields[14]) / _TICKS_PER_S
    return _TreeStat(
        session=int(fields[3]),
        is_alive=fields[0] not in (b"Z", b"X"),
        is_waiting=pid_and_name == f"{pid} ({WAITING}".encode(),
        threads=int(fields[17]),
        cpu_s=user_s + system_s,
        waited_cpu_s=waited_user_s + waited_system_s,
        rss_bytes=int(fields[21]) * _PAGE_BYTES,
    )


def _private_bytes(pid: int) -> int:
    """Return the memory that only this process has; 0 if it has just ended."""
    kib = 0
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Private_"):
                    kib += int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return kib * 1024
