"""Sensors of disturbance, read around every timed block: what happened to the process, apart from how long the block took."""

import contextlib
import os
import resource
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Reading(NamedTuple):
    """The counters now; None where the kernel does not have one."""

    switches: int  # involuntary context switches of this process
    pressure_us: int | None
    steal_ticks: int | None
    throttled: int | None

    def since(self, before: "Reading") -> "Reading":
        """Return what was counted since an earlier reading."""
        return Reading(
            self.switches - before.switches,
            _gained(before.pressure_us, self.pressure_us),
            _gained(before.steal_ticks, self.steal_ticks),
            _gained(before.throttled, self.throttled),
        )


def _gained(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before


class Sensors:
    """Keeps the kernel's files open, so that a reading costs a few microseconds."""

    def __init__(self) -> None:
        self._pressure = _open("/proc/pressure/cpu")
        self._stat = _open("/proc/stat")
        self._cgroup = _open_cgroup()

    def read(self) -> Reading:
        """Read every counter."""
        return Reading(
            resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
            _find(self._pressure, b"total="),
            _steal(self._stat),
            _find(self._cgroup, b"nr_throttled "),
        )


def is_disturbed(seen: Reading, wall_ns: int, cpu_ns: int, calm_share: float) -> bool:
    """Say whether a block was disturbed: throttled, robbed by the hypervisor, or off its core for a tenth of its time.

    `calm_share` is the CPU time that this arm uses of its wall time when nothing interferes; of one that mostly waits it tells
    nothing. GPUs are looked at afterwards, in judging/held_back.py.
    """
    # The pressure (PSI) is recorded and marks nothing. It is that of the whole box, where some process nearly always waits: on
    # two cores beside two processes that were busy half of the time, 48 % of the blocks had a pressure above 10 %, and 28 % of
    # these took a tenth longer, as did 22 % of all. Beside two that were always busy it was above 10 % in every block, and a
    # third of them ran at full speed. Together with involuntary switches it found, beyond the 7 % and 63 % that were off their
    # core and all slow, only blocks that took no longer (median 1.02 times the calm time; calm blocks 1.03).
    stolen_s = (seen.steal_ticks or 0) / _TICKS_PER_S
    is_off_core = calm_share > 0.5 and cpu_ns / wall_ns < 0.9 * calm_share
    return bool(seen.throttled) or stolen_s > 0.02 * wall_ns / 1e9 or is_off_core


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


def _read(fd: int | None) -> bytes:
    if fd is None:
        return b""
    try:
        return os.pread(fd, 512, 0)
    except OSError:
        return b""


def _find(fd: int | None, key: bytes) -> int | None:
    """Return the number after the first `key` in a file."""
    _, found, rest = _read(fd).partition(key)
    digits = rest.split(maxsplit=1)[:1]
    return int(digits[0]) if found and digits and digits[0].isdigit() else None


def _steal(fd: int | None) -> int | None:
    """Return the ticks that the hypervisor gave to others, of all cores."""
    fields = _read(fd).split(b"\n", 1)[0].split()
    return int(fields[8]) if len(fields) > 8 else None
