"""Finds the processes of a run, and checks whether a recorded process is alive.

A pid alone is never trusted, because pids are used again. A process is identified by boot, pid
namespace, pid and start time. A process counts as gone only if that is certain: if the system does
not answer (no free descriptor, a sandbox), OSError is raised. /proc may show little (only
processes), nothing, or the processes of another pid namespace, whose pids mean other processes.
"""

import contextlib
import errno
import functools
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tuilab.record.events import Identity

# The mark of a run: an environment variable with its name, which all its processes inherit.
MARK = "TUILAB_RUN"
# How /proc answers about a process that ended before it was opened, or while it was read.
GONE = (FileNotFoundError, ProcessLookupError)
MOUNT = "mount -t proc proc /proc"
LOOKS = 20  # searches that find only processes that end at once, before the search gives up

Presence = Literal["alive", "dead", "elsewhere", "unknown"]


def identify(pid: int) -> "Identity | None":
    """Return the identity of the process that has `pid` now; None if there is no such process."""
    # imported here: a supervisor that starts a worker ahead loads the module meanwhile
    from tuilab.record.events import Identity

    start = start_time(pid)
    if start is None:
        return None
    pid_namespace = _namespace("pid")
    time_namespace = _namespace("time")
    return Identity(host_name(), boot_id(), pid, start, pid_namespace, time_namespace)


def why_not_shown(root: Path = Path("/")) -> str:
    """Return why /proc does not show the processes of our pid namespace; empty if it does."""
    try:
        own_pid = os.readlink(root / "proc/self")
    except OSError:
        return "/proc is not mounted"
    if own_pid != str(os.getpid()):
        return "/proc belongs to another pid namespace"
    return ""


def host_name() -> str:
    """Return the name of this machine, which may be any bytes, as text that a record can hold."""
    return os.fsencode(socket.gethostname()).decode(errors="replace")


def start_time(pid: int) -> int | None:
    """Return when a process began, in clock ticks since boot; None if it is dead.

    A zombie counts as dead. A process whose first thread has ended looks like a zombie, but still
    has other threads. The clock is that of the machine; in a time namespace, /proc shows other
    times. Raises OSError if /proc does not show the process.
    """
    fields = stat_fields(pid)
    if fields is None or fields[0] == "X":
        return None
    if fields[0] == "Z" and int(fields[17]) <= 1:  # a zombie with one thread
        return None
    return max(int(fields[19]) - _ticks_ahead(), 0)  # field 19 from the state on: the start


def presence(identity: "Identity") -> Presence:
    """Say whether a recorded process lives.

    A process of another host or pid namespace cannot be seen from here. The boot is compared before
    the host name, because the name may change during a run. If a boot is not known, then or now,
    the same host name counts as the same boot.
    """
    try:
        boot = boot_id()
        is_same_boot = boot != "" and identity.boot == boot
        if not is_same_boot:
            if identity.host != host_name():
                return "elsewhere"
            if identity.boot and boot:
                return "dead"
        if identity.pid_namespace != _namespace("pid"):
            return "elsewhere"
        return "alive" if start_time(identity.pid) == identity.start else "dead"
    except OSError:
        return "unknown"


def has_our_clock(identity: "Identity") -> bool:
    """Say whether a process has our clock: of the same boot, in the same time namespace."""
    try:
        boot = boot_id()
        is_same_boot = boot != "" and identity.boot == boot
        return is_same_boot and identity.time_namespace == _namespace("time")
    except OSError:
        return True


def is_of_this_box(identity: "Identity") -> bool:
    """Return whether a recorded process ran on this machine, even under another host name."""
    boot = boot_id()
    is_same_boot = boot != "" and identity.boot == boot
    return is_same_boot or identity.host == host_name()


def descendants(pid: int, spare: Iterable[int] = ()) -> list[int]:
    """Return all descendants of `pid`, except those in `spare` and their descendants.

    It is cheap, includes zombies, and may miss a process that is just being created. Raises OSError
    if /proc does not show them.
    """
    _check_proc()
    try:
        return _below(pid, spare, _children)
    except OSError:
        # A kernel or a sandbox may lack the files that list children. Then all processes are read,
        # and each names its parent.
        return _below(pid, spare, _children_of_all().__getitem__)


def _below(pid: int, spare: Iterable[int], children_of: Callable[[int], list[int]]) -> list[int]:
    """Return all descendants of a process, by a function that returns the children of a process."""
    below: list[int] = []
    queue = [pid]
    while queue:
        children = [child for child in children_of(queue.pop()) if child not in spare]
        below += children
        queue += children
    return below


def marked(run: str) -> list[tuple[int, int]]:
    """Return (pid, start time) of this user's processes that carry the mark of `run`.

    Raises OSError if every search finds only processes that end before they can be read: a storm
    of short processes, of any run.
    """
    passed: set[int] = set()
    for _ in range(LOOKS):
        hits = list(search(run, passed))
        alive = [(pid, start) for pid, start in hits if start is not None]
        if alive:
            return alive
        if not hits:
            return []
    raise OSError(errno.EAGAIN, "processes start and end faster than they can be looked at")


def search(run: str, passed: set[int]) -> Iterator[tuple[int, int | None]]:
    """Yield (pid, start time) of the processes that carry the mark of `run`, new ones first.

    The start time is None for a process that ended before it could be read; it may have started
    another one after the processes were listed. Processes that are not of the run, and those that
    have ended, are added to `passed`: a later search skips them.
    """
    _check_proc()
    mark = f"{MARK}={run}".encode()
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    for pid in sorted(pids, reverse=True):
        if pid in passed or pid == os.getpid():
            continue
        with contextlib.suppress(PermissionError):  # /proc may hide processes of other users
            start = start_time(pid)
            environment = []
            if start is not None:
                environment = _environment(Path(f"/proc/{pid}"))
            if mark in environment:
                yield pid, start
                continue
            if not any(environment):  # a process that is just ending shows no environment
                yield pid, None
        passed.add(pid)


def _children(pid: int) -> list[int]:
    """Return the children of all threads of a process.

    Plain descriptors are used because the sampler asks twice a second.
    """
    children: list[int] = []
    for task in _tasks(pid):
        folder = f"/proc/{pid}/task/{task}"
        try:
            fd = os.open(f"{folder}/children", os.O_RDONLY | os.O_CLOEXEC)
            with contextlib.closing(os.fdopen(fd, "rb", buffering=0)) as file:
                children += map(int, file.readall().split())
        except OSError:
            if os.path.exists(folder):  # the thread has not ended: something else is wrong
                raise
    return children


def _tasks(pid: int) -> list[str]:
    """Return the threads of a process; none if it has ended."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except GONE:
        return []


def _children_of_all() -> dict[int, list[int]]:
    """Return the children of all processes, as far as /proc shows them."""
    children = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(PermissionError):
                if fields := stat_fields(int(name)):
                    parent = int(fields[1])  # after the state
                    children[parent].append(int(name))
    return children


def stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on; None if the process is gone.

    The name before the state may contain anything, even brackets. Raises OSError if /proc hides the
    process (PermissionError) or is of another pid namespace.
    """
    _check_proc()
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b") ")[2].decode().split()
    except GONE as problem:
        if _is_there(pid):
            raise PermissionError(
                errno.EPERM, "/proc hides the processes of other users"
            ) from problem
        return None


def _is_there(pid: int) -> bool:
    """Say whether there is such a process; /proc may hide it (hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return pid > 0  # os.kill takes other numbers for groups of processes


def _environment(entry: Path) -> list[bytes]:
    """Return the variables of a process as `NAME=value`; an empty list if it has ended."""
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except GONE:
        return []


def boot_id() -> str:
    """Return the identifier of this boot; empty if /proc shows only processes."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, PermissionError):
        return ""


def _namespace(kind: str) -> int:
    """Return the number of our namespace of this kind; 0 if /proc does not show it."""
    try:
        return os.stat(f"/proc/self/ns/{kind}").st_ino
    except (FileNotFoundError, PermissionError):
        return 0


def _check_proc() -> None:
    """Raise OSError if /proc does not show the processes of our pid namespace."""
    if why := why_not_shown():
        raise OSError(errno.ENOTSUP, why)


@functools.cache
def _ticks_ahead() -> int:
    """Return how far the time since boot in our time namespace is ahead of the machine's."""
    try:
        lines = Path("/proc/self/timens_offsets").read_text().splitlines()
    except (FileNotFoundError, PermissionError):
        return 0
    for line in lines:
        if line.startswith("boottime"):
            seconds = int(line.split()[1])
            return seconds * os.sysconf("SC_CLK_TCK")
    return 0
