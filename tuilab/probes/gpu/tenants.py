"""Read the processes on a GPU: the memory of the run's own, and how busy foreign ones keep it.

The driver identifies processes by pids. In a container these may be pids of the host, which mean
nothing here: an equal pid would count the memory of a foreign process as the run's own.
"""

import functools
import os
import pwd
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tuilab.probes.gpu.meters import IMPOSSIBLE_BYTES
from tuilab.text.display import show

_FIRST_NAMESPACE = "pid:[4026531836]"  # the pid namespace in which the kernel starts
# Codes for "no samples": success, as the module reports it, and "not found" of nvml.h.
_NO_SAMPLE_CODES = {0, 6}
_HOST_PIDS = "the driver names processes by pids of the host"
_NO_USER = 65534  # the kernel shows this number for a user who has none in this namespace


class GpuProcess(NamedTuple):
    """A process on a GPU."""

    pid: int
    user: str  # empty: not known
    why: str  # why the user is not known
    bytes_used: int | None  # None: the driver does not report it


def why_pids_mean_nothing(root: Path = Path("/")) -> str:
    """Return why the driver's pids may not be those seen here; empty if they are."""
    try:
        namespace = os.readlink(root / "proc/self/ns/pid")
    except OSError as problem:
        return f"unknown whether the pids of the driver are valid here: {problem.strerror}"
    if namespace == _FIRST_NAMESPACE:
        return ""
    return f"not visible in a container: {_HOST_PIDS}"


def count_foreign(
    listed: Sequence[Any], ours: Collection[int], *, is_timed_here: bool = False
) -> int:
    """Count the processes on a GPU that are not ours.

    `ours` has our pids. With `must_be_there`, one of ours works on this GPU now. Raises ValueError
    if the driver's pids cannot be those seen here.
    """
    foreign = [process for process in listed if process.pid not in ours]
    if len(foreign) == len(listed):
        if listed and not any(_exists(process.pid) for process in listed):
            raise ValueError(f"not visible: {_HOST_PIDS}")
        if is_timed_here:
            raise ValueError(
                "not visible: the driver does not list the process that is timed there"
            )
    return len(foreign)


def list_tenants(
    listed: Sequence[Any], ours: Collection[int], root: Path = Path("/")
) -> list[GpuProcess]:
    """Return the processes on a GPU that are not ours, the one with the most memory first."""
    processes = []
    for process in listed:
        if process.pid not in ours:
            user, why = user_of(process.pid, root)
            processes.append(GpuProcess(process.pid, user, why, bytes_of(process)))
    return sorted(processes, key=lambda process: (-(process.bytes_used or 0), process.pid))


def user_of(pid: int, root: Path = Path("/")) -> tuple[str, str]:
    """Return the user of a process, and why the user is not known. One of them is empty."""
    try:
        number = os.stat(root / "proc" / str(pid)).st_uid
    except OSError:
        return "", "its process is not visible from here"
    if number == _NO_USER:
        return "", "its user does not exist in this container"
    return _user_name(number), ""


@functools.lru_cache(256)
def _user_name(number: int) -> str:
    """Return the name of the user with this number, or `uid 1000` if it has no name."""
    try:
        return show(pwd.getpwuid(number).pw_name, 60)
    except KeyError:
        return f"uid {number}"


def bytes_of(process: Any) -> int | None:
    """Return the memory of a process; None if the driver reports none, or an impossible value."""
    used = process.usedGpuMemory
    if used is None or used >= IMPOSSIBLE_BYTES:
        return None
    return int(used)


def memory_of(listed: Sequence[Any], ours: Collection[int]) -> float | None:
    """Return the memory of our processes on a GPU; None if there are none.

    Raises ValueError if the driver does not report the memory of one of them.
    """
    own = [process for process in listed if process.pid in ours]
    if not own:
        return None
    total = 0
    for process in own:
        used = bytes_of(process)
        if used is None:
            raise ValueError("the driver does not report the memory of a process")
        total += used
    return float(total)


def _exists(pid: int) -> bool:
    """Return whether there is a process with this pid, of any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is a process of another user
        pass
    return True


class ForeignUse:
    """Measures how busy foreign processes keep a GPU.

    The driver keeps the samples of some seconds. Only those since the previous reading count.
    """

    def __init__(self) -> None:
        self._newest_us: int | None = None  # the time of the newest sample, by the driver's clock

    def read(self, nvml: Any, handle: Any, ours: Collection[int]) -> float | None:
        """Return the percentage since the previous reading; None at the first one.

        The highest sample of each foreign process counts. Raises ValueError for an impossible
        sample.
        """
        is_first = self._newest_us is None
        since_us = self._newest_us or 0
        samples = self._read_samples(nvml, handle, since_us)
        self._newest_us = max((sample.timeStamp for sample in samples), default=since_us)
        if is_first:
            return None
        peaks: dict[int, int] = {}  # by pid
        for sample in samples:
            if sample.smUtil > 100:
                raise ValueError(f"the driver said {sample.smUtil} %, which cannot be")
            if sample.pid not in ours:
                peaks[sample.pid] = max(peaks.get(sample.pid, 0), sample.smUtil)
        return float(min(sum(peaks.values()), 100))

    @staticmethod
    def _read_samples(nvml: Any, handle: Any, since_us: int) -> Sequence[Any]:
        """Return the driver's samples that are newer than `since_us`; none if it has none."""
        try:
            samples: Sequence[Any] = nvml.nvmlDeviceGetProcessUtilization(handle, since_us)
        except nvml.NVMLError as problem:
            if problem.value in _NO_SAMPLE_CODES:
                return []
            raise
        return [sample for sample in samples if sample.timeStamp > since_us]
