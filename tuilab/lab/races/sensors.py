"""Reads sensors of disturbance around every timed block.

They show what happened to the process, and do not depend on the time of the block.
"""

import contextlib
import ctypes
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from tuilab.probes.core_work import OTHERS_SHARE

if TYPE_CHECKING:  # this module is also used for commands, without torch
    from tuilab.lab.races.timing import Timed

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LINE_BYTES = 160  # for a core in /proc/stat, at most: a name and ten numbers
_STOLEN_SHARE = 0.02  # of the time: a block with more is disturbed
_OFF_CORE_SHARE = 0.1  # of the time: a block with more is disturbed


class SensorCounts(NamedTuple):
    """The counts between two readings; None if the kernel does not count something."""

    switches: int  # involuntary context switches of this process
    pressure_us: int | None
    steal_ticks: int | None  # of all cores
    core_steal_ticks: int | None  # of the core of this thread; None if the thread was moved
    throttled: int | None
    run_delay_ns: int | None  # in which this thread wanted a core and had none
    # share of the usable cores that other processes used; asked only if the thread had to wait
    others_share: float | None = None


class SensorReading(NamedTuple):
    """The counters at one time."""

    switches: int
    pressure_us: int | None
    steal_ticks: int | None
    core: int | None
    core_steal_ticks: int | None
    throttled: int | None
    run_delay_ns: int | None

    def since(self, before: "SensorReading") -> SensorCounts:
        """Return the counts since an earlier reading."""
        core_steal_ticks = None
        if self.core == before.core:
            core_steal_ticks = _gained(before.core_steal_ticks, self.core_steal_ticks)
        return SensorCounts(
            self.switches - before.switches,
            _gained(before.pressure_us, self.pressure_us),
            _gained(before.steal_ticks, self.steal_ticks),
            core_steal_ticks,
            _gained(before.throttled, self.throttled),
            _gained(before.run_delay_ns, self.run_delay_ns),
        )


def _gained(before: int | None, now: int | None) -> int | None:
    if before is None or now is None:
        return None
    return now - before


class Sensors:
    """Keeps the kernel's files open during a race.

    So a reading costs some twenty microseconds, outside of the timed calls.
    """

    def __enter__(self) -> Self:
        """Open the kernel's files; a file that does not exist gives no counts."""
        self._files = [
            _open("/proc/pressure/cpu"),
            _open("/proc/stat"),
            _open_cgroup(),
            _open("/proc/thread-self/schedstat"),
        ]
        self._core = _find_getcpu()
        return self

    def __exit__(self, *_exc: object) -> None:
        for fd in self._files:
            if fd is not None:
                os.close(fd)

    def read(self) -> SensorReading:
        """Read every counter."""
        pressure, stat, cgroup, schedstat = self._files
        core = self._core()
        lines = 2 + (core or 0)  # the line of all cores, and those up to this core
        steal_ticks, core_steal_ticks = steal_in(_read(stat, _LINE_BYTES * lines), core)
        return SensorReading(
            switches=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
            pressure_us=_find(pressure, b"total="),
            steal_ticks=steal_ticks,
            core=core,
            core_steal_ticks=core_steal_ticks,
            throttled=_find(cgroup, b"nr_throttled "),
            run_delay_ns=_second(_read(schedstat)),
        )


def is_disturbed(counts: SensorCounts, timed: "Timed", calm_share: float, threads: int) -> bool:
    """Say whether a block was disturbed.

    It was if the process was throttled, if the hypervisor took its core, or if it was off its core
    for a tenth of its time. `calm_share` is the CPU time of its arm as a share of its wall time
    when nothing interferes; for an arm that mostly waits it shows nothing. GPUs are checked
    afterwards, in judging/gpu_readings.py.
    """
    # The pressure (PSI) is recorded, but marks no block. It is that of the whole machine, where
    # some process nearly always waits. On two cores next to two processes that were busy half of
    # the time, 48 % of the blocks had a pressure above 10 %; 28 % of these took a tenth longer, as
    # did 22 % of all. Next to two that were always busy, it was above 10 % in every block, and a
    # third of them ran at full speed. In the two cases, 7 % and 63 % of the blocks were off their
    # core, and all of those were slow. Beyond them, pressure together with involuntary switches
    # found only blocks that took no longer (median 1.02 times the calm time; calm blocks 1.03).
    if counts.throttled or is_robbed(counts.core_steal_ticks, timed.wall_ns):
        return True
    if is_starved(counts, timed.wall_ns) and not _is_starved_by_its_own(counts):
        return True
    # A thread that gave its core away by itself (for a lock, a disk, a sleep) may have been off it
    # for that reason alone, which is a part of the arm. Threads that share their work wait for each
    # other all the time, and so for one that was off its core.
    is_own_doing = threads == 1 and bool(timed.waits)
    is_off_core = calm_share > 0.5 and timed.share(threads) < (1 - _OFF_CORE_SHARE) * calm_share
    return is_off_core and not is_own_doing


def is_starved(counts: SensorCounts, wall_ns: int) -> bool:
    """Say whether the thread wanted a core for a tenth of the time, and other threads had it.

    Unlike the time off the core, this does not contain the time that the thread waited by itself:
    for a lock, a disk, a sleep. For an arm that waits, nothing else shows that the machine is busy.
    """
    return (counts.run_delay_ns or 0) > _OFF_CORE_SHARE * wall_ns


def _is_starved_by_its_own(counts: SensorCounts) -> bool:
    """Say whether other processes left enough cores, so that processes of this run used them."""
    return counts.others_share is not None and counts.others_share < OTHERS_SHARE


def is_robbed(ticks: int | None, wall_ns: int, cores: int = 1) -> bool:
    """Say whether the hypervisor surely took more than 2 % of the time of that many cores."""
    # Steal is counted in ticks of 10 ms. Most of a tick that shows in a block was stolen before the
    # block, bit by bit. If single ticks marked blocks of 10 ms, a large and calm machine would mark
    # as many blocks as it has cores. Of n ticks, all but the first were stolen within the block.
    # Short blocks lose nothing: a kernel that knows the steal leaves it out of a thread's CPU time,
    # to the nanosecond, so that it shows as time off the core.
    if ticks is None:
        return False
    stolen_s = (ticks - 1) / _TICKS_PER_S
    return stolen_s > _STOLEN_SHARE * cores * wall_ns / 1e9


def steal_in(text: bytes, core: int | None) -> tuple[int | None, int | None]:
    """Return the stolen ticks of all cores and of one core, from the text of /proc/stat."""
    all_cores = _ninth(text, 0)
    if core is None:
        return all_cores, None
    position = text.find(b"\ncpu%d " % core)
    if position < 0:
        return all_cores, None
    return all_cores, _ninth(text, position + 1)


def _open(path: str) -> int | None:
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return None


def _open_cgroup() -> int | None:
    """Open the CPU statistics of our cgroup, v2 or v1, if it is mounted as usual."""
    with contextlib.suppress(OSError, IndexError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if not names or "cpu" in names.split(","):
                mount = f"/sys/fs/cgroup/{names}" if names else "/sys/fs/cgroup"
                fd = _open(f"{mount}{path}/cpu.stat")
                if fd is not None:
                    return fd
    return None


def _find_getcpu() -> Callable[[], int | None]:
    """Return a function that returns the core of the calling thread, or None if that is unknown.

    Python has no such function.
    """
    try:
        return ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return lambda: None


def _read(fd: int | None, size: int = 512) -> bytes:
    """Return the beginning of a file; empty if it is not open or cannot be read."""
    if fd is None:
        return b""
    try:
        return os.pread(fd, size, 0)
    except OSError:
        return b""


def _find(fd: int | None, key: bytes) -> int | None:
    """Return the number after the first `key` in a file; None if there is none."""
    _, _, rest = _read(fd).partition(key)  # empty if there is no key
    words = rest.split(maxsplit=1)
    if not words or not words[0].isdigit():
        return None
    return int(words[0])


def _second(text: bytes) -> int | None:
    """Return the second number of a line; None if it has none."""
    fields = text.split()
    if len(fields) < 2 or not fields[1].isdigit():
        return None
    return int(fields[1])


def _ninth(text: bytes, begin: int) -> int | None:
    """Return the ninth field of the line that begins there; None if the line is not whole.

    The first field is the name of the core.
    """
    end = text.find(b"\n", begin)
    if end < 0:
        return None
    fields = text[begin:end].split()
    return int(fields[8]) if len(fields) > 8 else None
