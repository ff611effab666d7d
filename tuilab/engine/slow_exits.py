"""What holds up the end of a process, as /proc tells: no signal hurries what the kernel does for it.

A process that ends gives back what it has, and that of one that used a GPU may take the driver many seconds. It can be told
from one that is held in the middle of a call, which may never return.
"""

import os
import signal

from tuilab.record.presence import stat_fields

_EXITING = 0x4  # PF_EXITING of the kernel, in the flags of a thread
_KILLED = 1 << (signal.SIGKILL - 1)  # among the signals that wait for a thread


def is_exiting(pid: int) -> bool:
    """Say whether each thread of a process has begun to end, and the rest is the kernel's; False where unknown."""
    threads = _threads(pid)
    return bool(threads) and all(map(_has_begun_to_end, threads))


def is_doomed(pid: int) -> bool:
    """Say whether each thread of a process has begun to end, or will when it leaves the kernel; False where unknown."""
    threads = _threads(pid)
    return bool(threads) and all(
        _has_begun_to_end(fields) or int(fields[28]) & _KILLED for fields in threads
    )


def why_it_stays(pid: int) -> str:
    """Return why a process that was killed does not go, or nothing where that is not seen."""
    if is_exiting(pid):
        return "the kernel still frees what it held, such as memory of a GPU"
    return (
        "in a call of the kernel that does not return"
        if any(fields[0] == "D" for fields in _threads(pid))
        else ""
    )


def _has_begun_to_end(fields: list[str]) -> bool:
    return fields[0] in "ZX" or bool(int(fields[6]) & _EXITING)


def _threads(pid: int) -> list[list[str]]:
    """Return what /proc/PID/stat says of each thread, from the state on; none where that cannot be told."""
    try:
        return [
            fields for name in os.listdir(f"/proc/{pid}/task") if (fields := stat_fields(int(name)))
        ]
    except OSError:
        return []
