"""Finds out whether a command waited for cores, and who used them."""

import time
from typing import NamedTuple

from tuilab.commands.cpu.core_use import CoreUse, Threads, usable_cores, used_s, worked_s
from tuilab.text import plural

_LEAST_S = 2.0  # on a core: a command that works less, such as a shell, is too short to judge
_WAITED_SHARE = 0.2  # of the time in which a core was wanted: from there on times are a quarter longer than they need to be
_FULL_SHARE = 0.75  # of the usable cores
_OTHERS_SHARE = 0.25  # of the usable cores: what tuilab uses itself is less


class Machine(NamedTuple):
    """The core time used up to a moment, in seconds."""

    at: float
    used_s: float
    own_s: float  # for the command, and for the process that watches it


class Use(NamedTuple):
    """How many of the usable cores were used on average."""

    all: float
    others: float  # by processes that are not of the command


class Contention:
    """The use of the cores by a command and by other processes, from the first reading to the last."""

    def __init__(self, pid: int) -> None:
        self.cores = CoreUse(pid)
        self._pid = pid
        self.usable = usable_cores()
        self.first: Machine | None = None
        self.last: Machine | None = None

    def look(self) -> bool:
        """Read who uses the cores; say whether that was done, because a slow reading is not repeated at once."""
        if not self.cores.read():
            return False
        self.last = self._read()
        self.first = self.first or self.last
        return True

    def is_starved(self) -> bool:
        """Say whether the command waited for cores so long that its times differ from those on a quiet machine."""
        threads = self.cores.threads
        return threads.ran_s >= _LEAST_S and waited_share(threads) >= _WAITED_SHARE

    def is_starved_by_others(self) -> bool:
        """Say whether it waited because other processes used the cores."""
        use = self._use()
        return self.is_starved() and use is not None and self._is_full(use) and use.others >= self._others_from()

    def are_cores_idle(self) -> bool:
        """Say whether the cores were seen to have time left, and the command did not wait for them."""
        use = self._use()
        return use is not None and not self._is_full(use) and not self.is_starved()

    def sentences(self) -> list[str]:
        """Return who used the cores, and what that means for the times of steps; nothing if the command had its cores."""
        if not self.is_starved():
            return []
        share = 100 * waited_share(self.cores.threads)
        waited = f"the command waited for a core {share:.0f} % of the time it wanted one"
        effect = f"{waited}, so its steps took longer than they would on a quiet machine"
        use, cores = self._use(), plural(len(self.usable), "core")
        if use is None or not self._is_full(use):
            return [effect]  # a limit of its control group may hold it back
        if self.is_starved_by_others():
            return [f"the machine was busy: other processes used {min(use.others, len(self.usable)):.1f} of {cores}", effect]
        return [f"the machine was busy: the command's own threads and processes compete for {cores}", effect]

    def _is_full(self, use: Use) -> bool:
        return use.all >= _FULL_SHARE * len(self.usable)

    def _others_from(self) -> float:
        return _OTHERS_SHARE * len(self.usable)

    def _use(self) -> Use | None:
        """Return how many cores were used on average; None if that is not known."""
        first, last = self.first, self.last
        if first is None or last is None or last.at <= first.at:
            return None
        seconds = last.at - first.at
        used = (last.used_s - first.used_s) / seconds
        return Use(used, used - (last.own_s - first.own_s) / seconds)

    def _read(self) -> Machine | None:
        used = used_s(self.usable)
        if used is None:
            return None
        return Machine(time.monotonic(), used, worked_s(self._pid) + time.process_time())


def waited_share(threads: Threads) -> float:
    """Return which share of the time in which threads wanted a core they had none."""
    wanted_s = threads.ran_s + threads.waited_s
    return threads.waited_s / wanted_s if wanted_s else 0.0
