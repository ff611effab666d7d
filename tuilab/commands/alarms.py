"""Looks out for what is worth an alert while a command trains, and records it as it is seen."""

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tuilab.commands.alerts import Creep, NotFinite, SlowRank, Stall, in_one
from tuilab.commands.steps import Step
from tuilab.record import events, presence
from tuilab.record.journal.writer import Writer

_READ_S = 1.0  # between two readings of memory, and looks at ranks
_BUSY_SHARE = 0.2  # of a core
_RANK_STEPS = 50
_PAGE_BYTES, _TICKS_PER_S = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


class Trained:
    """One process that steps, as far as alerts go."""

    def __init__(self, pid: int, arm: str) -> None:
        self.pid = pid
        self.arm = arm
        self.count = 0  # of its steps
        self.stall = Stall()
        self.not_finite = NotFinite()
        self.resident = Creep("resident memory")
        self.held = Creep("what torch holds on the GPU")
        self.last: deque[Step] = deque(maxlen=_RANK_STEPS)
        self.fresh = 0  # steps since the ranks were compared


class Alarms:
    """All of them, of one command."""

    def __init__(self, pid: int, journal: Writer, clock: Callable[[], float] = time.monotonic) -> None:
        self._pid = pid
        self._journal = journal
        self._clock = clock
        self._trained: dict[int, Trained] = {}
        self._slow_rank = SlowRank()
        self._read_at = clock()
        self._worked = clock(), 0.0  # when one looked last how long the processes had worked, and how long

    def step(self, pid: int, arm: str, steps: Sequence[Step], root: Callable[[int], str]) -> None:
        """Take the steps that a process made; `root` names what goes backward before an optimizer's step."""
        one = self._trained.setdefault(pid, Trained(pid, arm))
        if not steps:
            return
        self._tell("stall", [arm], one.stall.step(self._clock(), steps))
        for at, step in enumerate(steps):
            for owner, value in step.roots.items():
                self._tell("not finite", [arm], one.not_finite.look(root(owner), one.count + at, value))
        one.count += len(steps)
        one.fresh += len(steps)
        one.last.extend(steps)

    def hear(self, pid: int | None = None) -> None:
        """Take note that a process marked something else, or that something was printed, by whichever."""
        for one in self._trained.values():
            if pid in (None, one.pid):
                one.stall.hear(self._clock())

    def hold(self, pid: int, held: float) -> None:
        """Take what torch holds on a GPU in a process."""
        if one := self._trained.get(pid):
            self._tell("memory", [one.arm], one.held.read(one.count, held))

    def turn(self) -> None:
        """Look at what no mark tells: that none comes, and what the processes use."""
        now = self._clock()
        if now - self._read_at < _READ_S:
            return
        self._read_at = now
        self._look_for_stall(now)
        for one in self._trained.values():
            if (resident := resident_bytes(one.pid)) is not None:
                self._tell("memory", [one.arm], one.resident.read(one.count, resident))
        self._look_for_slow_rank()

    def _look_for_stall(self, now: float) -> None:
        near = [one for one in self._trained.values() if one.stall.is_near(now) and _is_there(one.pid)]
        if not near:
            self._worked = now, -1.0
            return
        (before, had_s), has_s = self._worked, worked_s(self._pid)
        self._worked = now, has_s
        is_busy = had_s < 0 or has_s - had_s > _BUSY_SHARE * (now - before)
        told = {one.arm: text for one in near if (text := one.stall.look(now, is_busy=is_busy))}
        if told:
            self._tell("stall", [*told], next(iter(told.values())))

    def _look_for_slow_rank(self) -> None:
        ranks = {one.arm: one for one in self._trained.values() if "rank" in one.arm}
        if len(ranks) > 1 and all(one.fresh >= _RANK_STEPS for one in ranks.values()):
            self._tell("slow rank", [""], self._slow_rank.look({name: one.last for name, one in ranks.items()}))
            for one in ranks.values():
                one.fresh = 0

    def _tell(self, what: str, arms: list[str], text: str) -> None:
        if text:
            arm, words = in_one(arms, text)
            self._journal.append(events.Alerted(what=what, text=words, arm=arm))


def worked_s(pid: int) -> float:
    """Return how long a process and all below it have worked, in seconds of a core; those that ended, too."""
    total = 0
    with suppress(OSError):
        for one in [pid, *presence.descendants(pid)]:
            if fields := presence.stat_fields(one):
                total += sum(map(int, fields[11:15]))
    return total / _TICKS_PER_S


def resident_bytes(pid: int) -> int | None:
    """Return the memory that a process has; None where that is not shown."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return None


def _is_there(pid: int) -> bool:
    try:
        return presence.start_time(pid) is not None
    except OSError:
        return True
