"""Who computes on a GPU: the memory of a run's own processes, who the others are, and how busy those keep it.

The driver tells processes apart by pids. In a container they may be the host's, and then they say nothing here: one that is
the same by accident would pass off a stranger's memory as the run's own.
"""

import functools
import os
import pwd
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tuilab.probes.gpu.meters import IMPOSSIBLE_BYTES
from tuilab.text.display import show

_FIRST_NAMESPACE = "pid:[4026531836]"  # of pids, as the kernel numbers the one that it starts with
_NOBODY = {0, 6}  # success without a sample, as the module tells it, and nvml.h's "not found"
_HOST_PIDS = "the driver names processes by pids of the host"
_NO_USER = 65534  # whom the kernel shows where a user has no number in this namespace


class Other(NamedTuple):
    """A process on a GPU that is not ours."""

    pid: int
    user: str  # empty: not known
    why: str  # the user is not known
    bytes_used: int | None  # None: the driver does not tell


def why_pids_mean_nothing(root: Path = Path("/")) -> str:
    """Return why the driver's pids may not be those seen here, or nothing."""
    try:
        namespace = os.readlink(root / "proc/self/ns/pid")
    except OSError as problem:
        return f"unknown whether the pids of the driver are valid here: {problem.strerror}"
    return "" if namespace == _FIRST_NAMESPACE else f"not visible in a container: {_HOST_PIDS}"


def strangers(listed: Sequence[Any], ours: Collection[int], *, must_be_there: bool = False) -> int:
    """Count the processes on a GPU that are not ours; ValueError where the pids of the list cannot be those seen here."""
    others = [process for process in listed if process.pid not in ours]
    if len(others) == len(listed):
        if listed and not any(_exists(process.pid) for process in listed):
            raise ValueError(f"not visible: {_HOST_PIDS}")
        if must_be_there:
            raise ValueError(
                "not visible: the driver does not list the process that is timed there"
            )
    return len(others)


def others_of(listed: Sequence[Any], ours: Collection[int], root: Path = Path("/")) -> list[Other]:
    """Return the processes on a GPU that are not ours, the one with the most memory first."""
    found = [
        Other(one.pid, *user_of(one.pid, root), bytes_of(one))
        for one in listed
        if one.pid not in ours
    ]
    return sorted(found, key=lambda one: (-(one.bytes_used or 0), one.pid))


def user_of(pid: int, root: Path = Path("/")) -> tuple[str, str]:
    """Return whose a process is, or why that is not known."""
    try:
        number = os.stat(root / "proc" / str(pid)).st_uid
    except OSError:
        return "", "its process is not visible from here"
    return (
        ("", "its user does not exist in this container")
        if number == _NO_USER
        else (_user_name(number), "")
    )


@functools.lru_cache(256)
def _user_name(number: int) -> str:
    try:
        return show(pwd.getpwuid(number).pw_name, 60)
    except KeyError:
        return f"uid {number}"


def bytes_of(process: Any) -> int | None:
    """Return the memory of a process, None where the driver does not tell it, or says what cannot be."""
    used = process.usedGpuMemory
    return None if used is None or used >= IMPOSSIBLE_BYTES else int(used)


def memory_of(listed: Sequence[Any], ours: Collection[int]) -> float | None:
    """Return the memory of our processes, None where there are none."""
    used = [process.usedGpuMemory for process in listed if process.pid in ours]
    if any(one is None or one >= IMPOSSIBLE_BYTES for one in used):
        raise ValueError("the driver does not report the memory of a process")
    return float(sum(used)) if used else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        pass
    return True


class Shares:
    """How busy others keep a GPU; the driver keeps some seconds of it, of which only what is new counts."""

    def __init__(self) -> None:
        self._seen_us: int | None = None  # the newest sample so far, by the driver's own clock

    def of_others(self, nvml: Any, handle: Any, ours: Collection[int]) -> float | None:
        """Return in percent how busy processes that are not ours kept it since it was asked last; None the first time."""
        is_first, since_us = self._seen_us is None, self._seen_us or 0
        samples = self._samples(nvml, handle, since_us)
        self._seen_us = max([since_us, *(sample.timeStamp for sample in samples)])
        if is_first:
            return None
        most: dict[int, int] = {}
        for sample in samples:
            if sample.smUtil > 100:
                raise ValueError(f"the driver said {sample.smUtil} %, which cannot be")
            if sample.pid not in ours:
                most[sample.pid] = max(most.get(sample.pid, 0), sample.smUtil)
        return float(min(sum(most.values()), 100))

    @staticmethod
    def _samples(nvml: Any, handle: Any, since_us: int) -> Sequence[Any]:
        try:
            found: Sequence[Any] = nvml.nvmlDeviceGetProcessUtilization(handle, since_us)
        except nvml.NVMLError as problem:
            if problem.value in _NOBODY:
                return []
            raise
        return [sample for sample in found if sample.timeStamp > since_us]
