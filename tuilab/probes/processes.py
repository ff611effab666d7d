"""The processes of all users: whose each is, since when it runs, its command, and how busy it keeps the cores.

Read from /proc a few files a process, so that a look at thousands takes some hundredths of a second.
"""

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from tuilab.probes.gpu.tenants import user_of, why_pids_mean_nothing
from tuilab.scrub import words_for_record
from tuilab.text.display import show

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_LIMIT = 4096  # bytes of a command
_LEAST_CORES = 0.01  # of a process that is told of
_MOST = 200
_OPEN = {"0", "off"}  # of hidepid: nothing is hidden


class Process(NamedTuple):
    """One of somebody; an empty user, age or command is not known, and `why` says why."""

    pid: int
    user: str
    age_s: float | None
    command: str
    why: str = ""
    cores: float | None = None  # how many it keeps busy
    rss_bytes: int | None = None


class _ProcessStat(NamedTuple):
    name: str
    start_ticks: int
    cpu_ticks: int
    rss_bytes: int


def look_at(pid: int, root: Path = Path("/")) -> Process:
    """Return what is to be seen of a process from here."""
    user, why = user_of(pid, root)
    try:
        stat = _stat(pid, root)
    except PermissionError:
        return Process(pid, user, None, "", why_hidden(root) or "no permission to read it")
    except (OSError, ValueError, IndexError):
        return Process(pid, user, None, "", why or "its process is not visible from here")
    return _process(pid, stat, root)


def why_hidden(root: Path = Path("/")) -> str:
    """Return why the processes of others are not to be seen here, or nothing."""
    if why_pids_mean_nothing(root):
        return "a container shows only its own processes"
    if os.geteuid() == 0:
        return ""
    try:
        mounts = [
            line.split()
            for line in (root / "proc/self/mounts").read_text(errors="replace").splitlines()
        ]
    except OSError:
        return ""
    options = [
        option
        for fields in mounts
        if fields[1:3] == ["/proc", "proc"]
        for option in fields[3].split(",")
    ]
    found = [
        value
        for name, _, value in (option.partition("=") for option in options)
        if name == "hidepid"
    ]
    return (
        f"processes of other users are hidden (hidepid={show(found[-1], 20)})"
        if found and found[-1] not in _OPEN
        else ""
    )


class Busy:
    """Looks which processes keep the cores busy, each time since the time before."""

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        self._root, self._clock = root, clock
        self._before: dict[tuple[int, int], int] = {}  # ticks of CPU time by pid and start
        self._read_at_s = 0.0

    def read(self, ours: Collection[int] = ()) -> list[Process] | None:
        """Return the busiest first, but for `ours`; None the first time, when nothing can be told yet."""
        is_first, before, now = not self._read_at_s, self._before, self._clock()
        passed_s, self._read_at_s = now - self._read_at_s, now
        found = [(pid, stat) for pid in self._pids() if (stat := self._stat(pid))]
        self._before = {(pid, stat.start_ticks): stat.cpu_ticks for pid, stat in found}
        if is_first or passed_s <= 0:
            return None
        since = (
            (pid, stat, stat.cpu_ticks - before.get((pid, stat.start_ticks), stat.cpu_ticks))
            for pid, stat in found
        )
        busy = [
            (ticks / _TICKS_PER_S / passed_s, pid, stat)
            for pid, stat, ticks in since
            if ticks > 0 and pid not in ours
        ]
        busiest = sorted((one for one in busy if one[0] >= _LEAST_CORES), reverse=True)[:_MOST]
        return [
            _process(pid, stat, self._root)._replace(cores=cores, rss_bytes=stat.rss_bytes)
            for cores, pid, stat in busiest
        ]

    def _pids(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._root / "proc") if name.isdigit()]
        except OSError:
            return []

    def _stat(self, pid: int) -> _ProcessStat | None:
        try:
            return _stat(pid, self._root)
        except (OSError, ValueError, IndexError):  # it has ended, or is hidden
            return None


def _process(pid: int, stat: _ProcessStat, root: Path) -> Process:
    user, why = user_of(pid, root)
    age_s = max(time.clock_gettime(time.CLOCK_BOOTTIME) - stat.start_ticks / _TICKS_PER_S, 0.0)
    return Process(pid, user, age_s, _command(pid, root) or f"[{show(stat.name, 60)}]", why)


def _stat(pid: int, root: Path) -> _ProcessStat:
    data = _read(f"{root}/proc/{pid}/stat")
    before, _, after = data.rpartition(b") ")  # the name may hold anything, brackets too
    fields = after.split()
    name = before.partition(b" (")[2].decode(errors="replace")
    return _ProcessStat(
        name, int(fields[19]), int(fields[11]) + int(fields[12]), int(fields[21]) * _PAGE_BYTES
    )


def _command(pid: int, root: Path) -> str:
    """Return the words of a command, without secrets; nothing of a process of the kernel, and of one that has just ended."""
    try:
        words = _read(f"{root}/proc/{pid}/cmdline").rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return show(" ".join(words_for_record([word.decode(errors="replace") for word in words])), 300)


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, _LIMIT)
    finally:
        os.close(file)
