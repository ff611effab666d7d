"""Find out why a killed process is still there.

The kernel frees the resources of a process after SIGKILL, and for GPU memory the driver may take
many seconds. Another process may hang in a system call that never returns.
"""

import os
import signal

from tuilab.record.presence import stat_fields

_EXITING = 0x4  # PF_EXITING, in the flags of a thread
_KILLED = 1 << (signal.SIGKILL - 1)  # in the pending signals of a thread


def is_exiting(pid: int) -> bool:
    """Say whether every thread of a process has begun to exit; False if unknown."""
    threads = _threads(pid)
    return bool(threads) and all(map(_has_begun_to_exit, threads))


def is_doomed(pid: int) -> bool:
    """Say whether every thread of a process is exiting, or has SIGKILL pending.

    False if unknown.
    """
    threads = _threads(pid)
    if not threads:
        return False
    return all(_has_begun_to_exit(fields) or int(fields[28]) & _KILLED for fields in threads)


def why_it_stays(pid: int) -> str:
    """Return why a killed process is still there; an empty string if that is unknown."""
    if is_exiting(pid):
        return "the kernel still frees what it held, such as memory of a GPU"
    if any(fields[0] == "D" for fields in _threads(pid)):
        return "in a call of the kernel that does not return"
    return ""


def _has_begun_to_exit(fields: list[str]) -> bool:
    return fields[0] in "ZX" or bool(int(fields[6]) & _EXITING)


def _threads(pid: int) -> list[list[str]]:
    """Return the fields of /proc/PID/stat of each thread, from the state on; empty if unknown."""
    try:
        names = os.listdir(f"/proc/{pid}/task")
        threads = [stat_fields(int(name)) for name in names]
    except OSError:
        return []
    return [fields for fields in threads if fields]
