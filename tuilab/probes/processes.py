"""Read the processes of all users: user, age, command, and how busy each keeps the cores.

A few files in /proc are read for each process, so that thousands of processes take only some
hundredths of a second.
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
_MIN_CORES = 0.01  # that a process keeps busy to be listed
_MAX_PROCESSES = 200
_NOT_HIDING = {"0", "off"}  # values of the mount option hidepid


class Process(NamedTuple):
    """A process of any user. An empty user, age or command is not known, for the reason `why`."""

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


def inspect_process(pid: int, root: Path = Path("/")) -> Process:
    """Return a process, with what can be seen of it from here."""
    user, why = user_of(pid, root)
    try:
        stat = _stat(pid, root)
    except PermissionError:
        return Process(pid, user, None, "", why_hidden(root) or "no permission to read it")
    except (OSError, ValueError, IndexError):
        return Process(pid, user, None, "", why or "its process is not visible from here")
    return _process(pid, stat, root)


def why_hidden(root: Path = Path("/")) -> str:
    """Return why the processes of other users cannot be seen here; empty if they can."""
    if why_pids_mean_nothing(root):
        return "a container shows only its own processes"
    if os.geteuid() == 0:
        return ""
    try:
        lines = (root / "proc/self/mounts").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    hidepid = "off"  # of the last mount of /proc that has the option
    for line in lines:
        fields = line.split()
        if fields[1:3] != ["/proc", "proc"]:
            continue
        for option in fields[3].split(","):
            name, _, value = option.partition("=")
            if name == "hidepid":
                hidepid = value
    if hidepid in _NOT_HIDING:
        return ""
    return f"processes of other users are hidden (hidepid={show(hidepid, 20)})"


class BusyProcesses:
    """Finds the processes that keep the cores busy, each time since the previous reading."""

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        # Ticks of CPU time at the previous reading, by pid and start. A pid may be given out again.
        self._previous_ticks: dict[tuple[int, int], int] = {}
        self._read_at_s = 0.0

    def read(self, ours: Collection[int] = ()) -> list[Process] | None:
        """Return the busy processes except ours, the busiest first; None at the first reading.

        `ours` has pids. None as well if the clock has not advanced. At most 200 are returned.
        """
        now_s = self._clock()
        is_first = not self._read_at_s
        elapsed_s = now_s - self._read_at_s
        self._read_at_s = now_s
        previous_ticks = self._previous_ticks
        self._previous_ticks = {}
        busy = []
        for pid in self._pids():
            stat = self._stat(pid)
            if stat is None:
                continue
            key = (pid, stat.start_ticks)
            self._previous_ticks[key] = stat.cpu_ticks
            if is_first or elapsed_s <= 0 or pid in ours:
                continue
            ticks = stat.cpu_ticks - previous_ticks.get(key, stat.cpu_ticks)
            cores = ticks / _TICKS_PER_S / elapsed_s
            if ticks > 0 and cores >= _MIN_CORES:
                busy.append((cores, pid, stat))
        if is_first or elapsed_s <= 0:
            return None
        processes = []
        for cores, pid, stat in sorted(busy, reverse=True)[:_MAX_PROCESSES]:
            process = _process(pid, stat, self._root)
            processes.append(process._replace(cores=cores, rss_bytes=stat.rss_bytes))
        return processes

    def _pids(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._root / "proc") if name.isdigit()]
        except OSError:
            return []

    def _stat(self, pid: int) -> _ProcessStat | None:
        """Return the statistics of a process; None if it has ended, or is hidden."""
        try:
            return _stat(pid, self._root)
        except (OSError, ValueError, IndexError):  # it has ended, or is hidden
            return None


def _process(pid: int, stat: _ProcessStat, root: Path) -> Process:
    """Return a process from its statistics, with its user, age and command."""
    user, why = user_of(pid, root)
    age_s = max(time.clock_gettime(time.CLOCK_BOOTTIME) - stat.start_ticks / _TICKS_PER_S, 0.0)
    command = _command(pid, root) or f"[{show(stat.name, 60)}]"
    return Process(pid, user, age_s, command, why)


def _stat(pid: int, root: Path) -> _ProcessStat:
    """Return the statistics of a process from /proc/PID/stat.

    Raises OSError if the process has ended or is hidden, ValueError or IndexError if the file is
    cut.
    """
    data = _read(f"{root}/proc/{pid}/stat")
    pid_and_name, _, rest = data.rpartition(b") ")  # the name may contain anything, brackets too
    name = pid_and_name.partition(b" (")[2].decode(errors="replace")
    fields = rest.split()
    return _ProcessStat(
        name=name,
        start_ticks=int(fields[19]),
        cpu_ticks=int(fields[11]) + int(fields[12]),  # in user mode and in the kernel
        rss_bytes=int(fields[21]) * _PAGE_BYTES,  # /proc counts pages
    )


def _command(pid: int, root: Path) -> str:
    """Return the command of a process without secrets.

    Empty for a process of the kernel, and for one that has just ended.
    """
    try:
        data = _read(f"{root}/proc/{pid}/cmdline")
    except OSError:
        return ""
    words = [word.decode(errors="replace") for word in data.rstrip(b"\0").split(b"\0")]
    return show(" ".join(words_for_record(words)), 300)


def _read(path: str) -> bytes:
    """Return the first 4096 bytes of a file in /proc, in one read; raise OSError if it is gone."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, _LIMIT)
    finally:
        os.close(file)
