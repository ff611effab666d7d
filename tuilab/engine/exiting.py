"""What holds up the end of a process, as /proc tells: no signal hurries what the kernel does for it.

A process that ends gives back what it has, and that of one that used a GPU may take the driver many seconds. It can be told
from one that is held in the middle of a call, which may never return.
"""

import contextlib
import os

from tuilab.record.presence import stat_fields

_EXITING = 0x4  # PF_EXITING of the kernel, in the flags of a thread


def is_exiting(pid: int) -> bool:
    """Say whether each thread of a process has begun to end, and the rest is the kernel's; False where unknown."""
    try:
        threads = [stat_fields(int(name)) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return False
    return any(threads) and all(fields is None or _has_begun_to_end(fields) for fields in threads)


def why_it_stays(pid: int) -> str:
    """Return why a process that was killed does not go, or nothing where that is not seen."""
    if is_exiting(pid):
        return "the kernel still frees what it held, such as memory of a GPU"
    return "in a call of the kernel that does not return" if _is_in_a_call(pid) else ""


def _has_begun_to_end(fields: list[str]) -> bool:
    return fields[0] in "ZX" or bool(int(fields[6]) & _EXITING)


def _is_in_a_call(pid: int) -> bool:
    """Say whether a thread of a process waits in the kernel and cannot be interrupted."""
    with contextlib.suppress(OSError):
        return any((stat_fields(int(name)) or " ")[0] == "D" for name in os.listdir(f"/proc/{pid}/task"))
    return False
