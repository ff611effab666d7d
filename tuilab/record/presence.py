"""Which processes belong to a run, and whether they live.

A pid alone is never trusted: it is used again. A process is known by boot, pid namespace, pid and start time. Only what is
known to be gone is taken for gone: a system that does not answer (no descriptor left, a sandbox) raises OSError. A /proc may
show little (only processes), nothing, or the processes of another pid namespace, whose numbers mean others here.
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

MARK = "TUILAB_RUN"  # environment variable that every process of a run inherits
GONE = (
    FileNotFoundError,
    ProcessLookupError,
)  # how /proc answers about a process that has ended, before and while it is read
MOUNT = "mount -t proc proc /proc"
LOOKS = 20  # at processes that are gone before they are looked at, until that is taken for all that can be known of them

Presence = Literal["alive", "dead", "elsewhere", "unknown"]


def identify(pid: int) -> "Identity | None":
    """Return who `pid` is now; None when there is no such process."""
    from tuilab.record.events import (
        Identity,
    )  # a supervisor that starts a worker ahead loads it meanwhile

    start = start_time(pid)
    return (
        None
        if start is None
        else Identity(host_name(), boot_id(), pid, start, _namespace("pid"), _namespace("time"))
    )


def why_not_shown(root: Path = Path("/")) -> str:
    """Return why /proc does not show the processes that this one can signal; nothing where it does."""
    try:
        shown = os.readlink(root / "proc/self")
    except OSError:
        return "/proc is not mounted"
    return "" if shown == str(os.getpid()) else "/proc belongs to another pid namespace"


def host_name() -> str:
    """Return the name of this box as a record can hold it; it may be any bytes, and may be another one tomorrow."""
    return os.fsencode(socket.gethostname()).decode(errors="replace")


def start_time(pid: int) -> int | None:
    """Return when `pid` started, in clock ticks after boot; None when it is gone or a zombie; OSError when /proc does not tell.

    A process whose first thread has ended looks like a zombie, but has other threads. The clock is that of the box: in a time
    namespace /proc tells other times.
    """
    fields = stat_fields(pid)
    if fields is None or fields[0] == "X" or (fields[0] == "Z" and int(fields[17]) <= 1):
        return None
    return max(int(fields[19]) - _ticks_ahead(), 0)


def presence(identity: "Identity") -> Presence:
    """Say whether a recorded process lives; one of another host or pid namespace cannot be seen from here.

    The name of the host is asked last: it changes while a run goes on, and the boot does not. A boot that is not known, then or
    now, is taken for this one where the name is the same.
    """
    try:
        boot = boot_id()
        if not identity.boot == boot != "":
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
    """Say whether the clock of a process began when ours did: with the boot, but in a time namespace at any moment."""
    try:
        return identity.boot == boot_id() != "" and identity.time_namespace == _namespace("time")
    except OSError:
        return True


def is_of_this_box(identity: "Identity") -> bool:
    """Say whether a recorded process ran here, under whatever name this box had then."""
    return identity.boot == boot_id() != "" or identity.host == host_name()


def descendants(pid: int, spare: Iterable[int] = ()) -> list[int]:
    """Return every process below `pid`, near ones first, but those in `spare` and below them.

    It is cheap, includes zombies, and may miss one that is just being born. OSError when /proc does not tell.
    """
    _check_proc()
    try:
        return _below(pid, spare, _children)
    except OSError:  # a kernel or a sandbox without the files that list children: every process is asked for its parent
        return _below(pid, spare, _every_parent().__getitem__)


def _below(pid: int, spare: Iterable[int], children_of: Callable[[int], list[int]]) -> list[int]:
    found: list[int] = []
    queue = [pid]
    while queue:
        children = [child for child in children_of(queue.pop()) if child not in spare]
        found += children
        queue += children
    return found


def marked(run: str) -> list[tuple[int, int]]:
    """Return (pid, start time) of this user's processes that carry the mark of `run`; OSError when that cannot be told.

    It cannot where each look finds processes that are gone before they are looked at: a storm of them, of whatever run.
    """
    passed: set[int] = set()
    for _ in range(LOOKS):
        seen = list(search(run, passed))
        if found := [(pid, start) for pid, start in seen if start is not None]:
            return found
        if not seen:
            return []
    raise OSError(errno.EAGAIN, "processes start and end faster than they can be looked at")


def search(run: str, passed: set[int]) -> Iterator[tuple[int, int | None]]:
    """Yield (pid, start time) of what carries the mark of `run` as it is found, new ones first, but for what was `passed`.

    Without a start time: of what had ended before it was looked at, and may have started another since the processes were
    listed. What is not of the run is added to `passed`, and what has ended, so that one look later is sure of it.
    """
    _check_proc()
    mark = f"{MARK}={run}".encode()
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True):
        if pid in passed or pid == os.getpid():
            continue
        with contextlib.suppress(PermissionError):  # /proc may hide what belongs to others
            start = start_time(pid)
            environment = [] if start is None else _environment(Path(f"/proc/{pid}"))
            if mark in environment:
                yield pid, start
                continue
            if not any(environment):  # nothing can be read of what is just ending
                yield pid, None
        passed.add(pid)


def _children(pid: int) -> list[int]:
    """Return the children of all threads of a process; plain descriptors, because the sampler asks twice a second."""
    found: list[int] = []
    for task in _tasks(pid):
        name = f"/proc/{pid}/task/{task}"
        try:
            fd = os.open(f"{name}/children", os.O_RDONLY | os.O_CLOEXEC)
            with contextlib.closing(os.fdopen(fd, "rb", buffering=0)) as file:
                found += map(int, file.readall().split())
        except OSError:
            if os.path.exists(name):  # then it is not because the thread has ended
                raise
    return found


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except GONE:
        return []


def _every_parent() -> dict[int, list[int]]:
    """Return the children of every process, as far as /proc shows them."""
    found = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(PermissionError):
                if fields := stat_fields(int(name)):
                    found[int(fields[1])].append(int(name))
    return found


def stat_fields(pid: int) -> list[str] | None:
    """Return /proc/PID/stat from the state on; the name before it may hold anything, brackets too. None when it is gone."""
    _check_proc()
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].decode().split()
    except GONE as problem:
        if _is_there(pid):
            raise PermissionError(
                errno.EPERM, "/proc hides the processes of other users"
            ) from problem
        return None


def _is_there(pid: int) -> bool:
    """Say whether there is such a process, which /proc may hide (hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return pid > 0  # other numbers mean many processes


def _environment(entry: Path) -> list[bytes]:
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except GONE:
        return []


def boot_id() -> str:
    """Return what tells this boot from all others; nothing where /proc shows processes only."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, PermissionError):
        return ""


def _namespace(kind: str) -> int:
    try:
        return os.stat(f"/proc/self/ns/{kind}").st_ino
    except (FileNotFoundError, PermissionError):
        return 0


def _check_proc() -> None:
    if why := why_not_shown():
        raise OSError(errno.ENOTSUP, why)


@functools.cache
def _ticks_ahead() -> int:
    """Return how much later than the box the time namespace of this process takes the time since boot to be."""
    try:
        lines = Path("/proc/self/timens_offsets").read_text().splitlines()
    except (FileNotFoundError, PermissionError):
        return 0
    seconds = next((int(line.split()[1]) for line in lines if line.startswith("boottime")), 0)
    return seconds * os.sysconf("SC_CLK_TCK")
