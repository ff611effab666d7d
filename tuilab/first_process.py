"""Whether this process is the first of a container, so that all it starts ends with it.

The kernel ends all of a pid namespace with its first process. It also keeps from that one every signal that it does not handle:
`docker stop` would wait in vain, and then kill. An init that comes with a container ends with the one process that it starts.
"""

import contextlib
import os

_INITS = {
    "tini",
    "docker-init",
    "podman-init",
    "catatonit",
    "dumb-init",
}  # docker run --init, podman run --init, images


def takes_all_along() -> bool:
    """Say whether what is started here cannot outlive this process."""
    return is_first(os.getpid(), os.getppid())


def is_first(pid: int, parent: int) -> bool:
    """Say whether a process with this parent is the one that its container is for."""
    return pid == 1 or (parent == 1 and name_of_init() in _INITS)


def name_of_init() -> str:
    """Return the name of the first process here; nothing where /proc does not tell."""
    with contextlib.suppress(OSError), open("/proc/1/comm", errors="replace") as file:
        return file.read().strip()
    return ""


class Orphans:
    """What becomes a child of the first process when its parent is killed, as workers of a supervisor do: nobody waits for it.

    A child of its own is left to whoever waits for it, for as long as from one look to the next.
    """

    def __init__(self) -> None:
        self._dead: set[int] = set()

    def bury(self) -> None:
        """Reap those that were dead at the last look, too."""
        dead = {pid for pid in _children() if _is_dead(pid)}
        for pid in dead & self._dead:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._dead = dead - self._dead


def _children() -> list[int]:
    """Return the children of this process; none where /proc does not list them."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as file:
                found += map(int, file.read().split())
    return found


def _is_dead(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return False
