"""Detect whether this process is the first of a container, with which all others end.

When the first process of a PID namespace ends, the kernel kills all others in it. The kernel also
ignores every signal that the first process does not handle: `docker stop` would wait in vain, and
then kill it. The init of a container ends with the one process that it starts.
"""

import contextlib
import os

# The inits of `docker run --init`, `podman run --init`, and images.
_INITS = {"tini", "docker-init", "podman-init", "catatonit", "dumb-init"}


def is_container_main() -> bool:
    """Return whether the processes that this one starts cannot outlive it."""
    return is_first(os.getpid(), os.getppid())


def is_first(pid: int, parent: int) -> bool:
    """Return whether a process is the main one of its container."""
    return pid == 1 or (parent == 1 and name_of_init() in _INITS)


def name_of_init() -> str:
    """Return the name of the first process here; empty if /proc does not show it."""
    with contextlib.suppress(OSError), open("/proc/1/comm", errors="replace") as file:
        return file.read().strip()
    return ""


class Orphans:
    """The children of the first process that it did not start itself.

    A process becomes its child when its parent is killed, as workers of a supervisor do, and no
    code waits for it. Code that waits for a child of its own must do so between two calls of
    `bury`.
    """

    def __init__(self) -> None:
        self._dead: set[int] = set()  # at the last call, and not reaped yet

    def bury(self) -> None:
        """Reap the children that were already dead at the last call."""
        dead = {pid for pid in _children() if _is_dead(pid)}
        for pid in dead & self._dead:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._dead = dead - self._dead


def _children() -> list[int]:
    """Return the children of this process; none if /proc does not list them."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as file:
                pids += map(int, file.read().split())
    return pids


def _is_dead(pid: int) -> bool:
    """Return whether a child has ended and was not waited for; leave it so."""
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return False
