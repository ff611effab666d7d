"""Which processes belong to a run, whether they live, and how they are ended without hurting an innocent one.

A pid alone is never trusted: it is used again. A process is known by host, boot, pid namespace, pid and start time, and a
signal goes through a pidfd that was opened before the start time was compared.
"""

import contextlib
import ctypes
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from tuilab.events import Identity

MARK = "TUILAB_RUN"  # environment variable that every process of a run inherits
SPARE = "spare".ljust(120, ".")  # the mark of a process that waits for its run: there is room for the name of any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def identify(pid: int) -> Identity | None:
    """Return who `pid` is now; None when there is no such process."""
    start = start_time(pid)
    return None if start is None else Identity(socket.gethostname(), _boot_id(), pid, start, _pid_namespace())


def start_time(pid: int) -> int | None:
    """Return when `pid` started, in clock ticks after boot; None when it is gone or a zombie.

    A process whose first thread has ended looks like a zombie, but has other threads.
    """
    fields = _stat_fields(pid)
    if fields is None or fields[0] == "X" or (fields[0] == "Z" and int(fields[17]) <= 1):
        return None
    return int(fields[19])


def presence(identity: Identity) -> Literal["alive", "dead", "elsewhere"]:
    """Say whether a recorded process lives; one of another host or pid namespace cannot be seen from here."""
    if identity.host != socket.gethostname():
        return "elsewhere"
    if identity.boot != _boot_id():
        return "dead"
    if identity.pid_namespace != _pid_namespace():
        return "elsewhere"
    return "alive" if start_time(identity.pid) == identity.start else "dead"


def send(pid: int, start: int, number: int) -> bool:
    """Signal the process that had `pid` and started at `start`; return False when it is gone."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if start_time(pid) != start:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def descendants(pid: int, spare: Iterable[int] = ()) -> list[int]:
    """Return every process below `pid`, near ones first, but those in `spare` and below them.

    It is cheap, includes zombies, and may miss one that is just being born.
    """
    found: list[int] = []
    queue = [pid]
    while queue:
        children = [child for child in _children(queue.pop()) if child not in spare]
        found += children
        queue += children
    return found


def end_descendants(grace_s: float, spare: Iterable[int] = (), tend: Callable[[], bool] = lambda: False) -> list[str]:
    """End everything below this process (a subreaper): SIGTERM, a grace, SIGKILL until none is left; not `spare` and below.

    `tend` is called while waiting, must reap the dead, and says whether to skip what is left of the grace. Returns the
    names of those that could not be ended.
    """
    spared = set(spare)
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + patience_s
        signalled: set[int] = set()
        while time.monotonic() < deadline:
            living = _living(spared) or _living(spared)  # one walk may miss a child whose parent ends meanwhile
            if not living:
                return []
            for pid in living:
                if number == signal.SIGKILL or pid not in signalled:
                    _signal_now(pid, number)
                    signalled.add(pid)
            if tend() and number == signal.SIGTERM:
                break
            time.sleep(0.02)
    return [name_of(pid) for pid in _living(spared)]


def marked(run: str) -> list[tuple[int, int]]:
    """Return (pid, start time) of this user's processes that carry the mark of `run`."""
    mark = f"{MARK}={run}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            start = start_time(int(entry.name))
            if start is not None and mark in _environment(entry):
                found.append((int(entry.name), start))
    return found


def open_mark() -> Callable[[str], None]:
    """Return a function that marks this process, started with SPARE, with the name of a run; OSError where it would not show.

    Others see the environment in the memory where exec put it, whatever `os.environ` says later. So the mark is overwritten
    in place, and processes that are forked from here show it too.
    """
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    place = getenv(MARK.encode())
    stat = _stat_fields(os.getpid()) or []
    begin, end = map(int, stat[47:49] or (0, 0))
    if os.environ.get(MARK) != SPARE or not begin <= place < end - len(SPARE):
        raise OSError("the mark of this process cannot be changed")

    def take(run: str) -> None:
        ctypes.memmove(place, run.encode().ljust(len(SPARE), b"\0"), len(SPARE))
        os.environ[MARK] = run

    return take


def end_marked(run: str, grace_s: float = 1.0) -> list[str]:
    """End the processes that a dead supervisor left behind; return the names of those that would not go."""
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + patience_s
        first = True
        while left := marked(run):
            if time.monotonic() > deadline:
                break
            if first or number == signal.SIGKILL:
                for pid, start in left:
                    send(pid, start, number)
                    send(pid, start, signal.SIGCONT)
            first = False
            time.sleep(0.02)
        else:
            return []
    return [name_of(pid) for pid, _ in marked(run)]


def name_of(pid: int) -> str:
    """Return `1234 python train.py` for a message or a record, without secrets."""
    from tuilab.scrub import words_for_record  # `tuilab list` does without it

    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        words = ["gone"]
    return f"{pid} {' '.join(words_for_record(words)).strip()[:80]}"


def signal_name(number: int) -> str:
    """Return `SIGTERM`; most of the real-time signals have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def become_subreaper() -> None:
    """Become the parent of every orphan below: a daemon cannot leave the run."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends (or has ended by now)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _living(spared: set[int]) -> list[int]:
    return [pid for pid in descendants(os.getpid(), spared) if start_time(pid) is not None]


def _signal_now(pid: int, number: int) -> None:
    """Signal a process below us: its pid cannot be used again before we have reaped it, or its own parent has."""
    start = start_time(pid)
    if start is not None and send(pid, start, number) and number == signal.SIGTERM:
        send(pid, start, signal.SIGCONT)  # a stopped process could not act on it


def _children(pid: int) -> list[int]:
    """Return the children of all threads of a process; plain descriptors, because the sampler asks twice a second."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                fd = os.open(f"/proc/{pid}/task/{task}/children", os.O_RDONLY | os.O_CLOEXEC)
                with contextlib.closing(os.fdopen(fd, "rb", buffering=0)) as file:
                    found += map(int, file.readall().split())
    return found


def _stat_fields(pid: int) -> list[str] | None:
    """Return /proc/PID/stat from the state on; the name before it may hold anything, brackets too."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].decode().split()
    except OSError:
        return None


def _environment(entry: Path) -> list[bytes]:
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino
