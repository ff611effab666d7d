"""Sensors of disturbance, read around every timed block: what happened to the process, apart from how long the block took."""

import contextlib
import ctypes
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from tuilab.probes.core_work import OTHERS_SHARE

if TYPE_CHECKING:  # of commands it is used without torch
    from tuilab.lab.races.timing import Timed

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LINE_BYTES = 160  # of a core in /proc/stat, at most: a name and ten numbers
_STOLEN_SHARE = 0.02
_OFF_CORE_SHARE = 0.1


class SensorCounts(NamedTuple):
    """What was counted between two readings; None where the kernel does not count it."""

    switches: int  # involuntary context switches of this process
    pressure_us: int | None
    steal_ticks: int | None  # of all cores
    core_steal_ticks: (
        int | None
    )  # of the core that this thread was on both times; None if it was moved
    throttled: int | None
    run_delay_ns: int | None  # in which this thread wanted a core and had none
    others_share: float | None = (
        None  # of the usable cores, used by other processes; asked only if the thread had to wait
    )


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
        """Return what was counted since an earlier reading."""
        return SensorCounts(
            self.switches - before.switches,
            _gained(before.pressure_us, self.pressure_us),
            _gained(before.steal_ticks, self.steal_ticks),
            _gained(before.core_steal_ticks, self.core_steal_ticks)
            if self.core == before.core
            else None,
            _gained(before.throttled, self.throttled),
            _gained(before.run_delay_ns, self.run_delay_ns),
        )


def _gained(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before


class Sensors:
    """Keeps the kernel's files open for a race, so that a reading costs some twenty microseconds, outside of what is timed."""

    def __enter__(self) -> Self:
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
        every, ours = steal_in(_read(stat, _LINE_BYTES * (2 + (core or 0))), core)
        return SensorReading(
            resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
            _find(pressure, b"total="),
            every,
            core,
            ours,
            _find(cgroup, b"nr_throttled "),
            _second(_read(schedstat)),
        )


def is_disturbed(seen: SensorCounts, timed: "Timed", calm_share: float, threads: int) -> bool:
    """Say whether a block was disturbed: throttled, robbed by the hypervisor, or off its core for a tenth of its time.

    `calm_share` is the CPU time that its arm uses of its wall time when nothing interferes; of one that mostly waits it tells
    nothing. GPUs are looked at afterwards, in judging/gpu_readings.py.
    """
    # The pressure (PSI) is recorded and marks nothing. It is that of the whole box, where some process nearly always waits: on
    # two cores beside two processes that were busy half of the time, 48 % of the blocks had a pressure above 10 %, and 28 % of
    # these took a tenth longer, as did 22 % of all. Beside two that were always busy it was above 10 % in every block, and a
    # third of them ran at full speed. Together with involuntary switches it found, beyond the 7 % and 63 % that were off their
    # core and all slow, only blocks that took no longer (median 1.02 times the calm time; calm blocks 1.03).
    is_off_core = calm_share > 0.5 and timed.share(threads) < (1 - _OFF_CORE_SHARE) * calm_share
    # A thread that gave its core away by itself, for a lock, a disk, a sleep, may have been off it for that alone: what an arm
    # does is no disturbance of it. Threads that share their work wait for each other all the time, and so for one that was off.
    is_own_doing = threads == 1 and bool(timed.waits)
    if seen.throttled or is_robbed(seen.core_steal_ticks, timed.wall_ns):
        return True
    if is_starved(seen, timed.wall_ns) and not _is_starved_by_its_own(seen):
        return True
    return is_off_core and not is_own_doing


def is_starved(seen: SensorCounts, wall_ns: int) -> bool:
    """Return whether the thread wanted a core for a tenth of the time, and other threads had it.

    Unlike the time off the core, this does not contain what the thread waited for by itself: a
    lock, a disk, a sleep. An arm that waits shows in no other way that the machine is busy.
    """
    return (seen.run_delay_ns or 0) > _OFF_CORE_SHARE * wall_ns


def _is_starved_by_its_own(seen: SensorCounts) -> bool:
    """Return whether other processes left enough of the cores, so that those of this run had them."""
    return seen.others_share is not None and seen.others_share < OTHERS_SHARE


def is_robbed(ticks: int | None, wall_ns: int, cores: int = 1) -> bool:
    """Say whether the hypervisor surely took more than 2 % of the time of that many cores."""
    # Steal is counted in ticks of 10 ms, and one that shows in a block was for the most part stolen before it, bit by bit: to
    # mark blocks of 10 ms by single ticks would mark as many on a large and calm box as it has cores. Of n ticks all but the
    # first were stolen within the block. Short blocks lose nothing by it: where the hypervisor tells what it steals, the kernel
    # leaves that out of a thread's CPU time, to the nanosecond, so that it shows as time off the core.
    return ticks is not None and (ticks - 1) / _TICKS_PER_S > _STOLEN_SHARE * cores * wall_ns / 1e9


def steal_in(text: bytes, core: int | None) -> tuple[int | None, int | None]:
    """Return the ticks that the hypervisor gave to others, of all cores and of one, from the text of /proc/stat."""
    found = None if core is None else text.find(b"\ncpu%d " % core)
    return _ninth(text, 0), None if found is None or found < 0 else _ninth(text, found + 1)


def _open(path: str) -> int | None:
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return None


def _open_cgroup() -> int | None:
    """Open the CPU statistics of our cgroup, v2 or v1, where it is mounted as usual."""
    with contextlib.suppress(OSError, IndexError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if not names or "cpu" in names.split(","):
                mount = f"/sys/fs/cgroup/{names}" if names else "/sys/fs/cgroup"
                if (found := _open(f"{mount}{path}/cpu.stat")) is not None:
                    return found
    return None


def _find_getcpu() -> Callable[[], int | None]:
    """Return what tells the core that the calling thread is on; Python has no call for it."""
    try:
        return ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return lambda: None


def _read(fd: int | None, size: int = 512) -> bytes:
    if fd is None:
        return b""
    try:
        return os.pread(fd, size, 0)
    except OSError:
        return b""


def _find(fd: int | None, key: bytes) -> int | None:
    """Return the number after the first `key` in a file."""
    _, found, rest = _read(fd).partition(key)
    digits = rest.split(maxsplit=1)[:1]
    return int(digits[0]) if found and digits and digits[0].isdigit() else None


def _second(text: bytes) -> int | None:
    """Return the second number of a line of numbers, if it has one."""
    fields = text.split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None


def _ninth(text: bytes, at: int) -> int | None:
    """Return the ninth field of the line that begins there, its name the first, if the line is whole."""
    end = text.find(b"\n", at)
    fields = text[at:end].split() if end >= 0 else []
    return int(fields[8]) if len(fields) > 8 else None
