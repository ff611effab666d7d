"""Watch for events that are worth an alert while a command trains, and record each at once."""

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tuilab.commands.alarm_rules import Creep, NotFinite, SlowRank, Stall, in_one
from tuilab.commands.cpu.contention import Contention
from tuilab.commands.cpu.core_use import has_high_pressure
from tuilab.commands.steps import Step
from tuilab.probes.core_work import worked_s
from tuilab.record import events, presence
from tuilab.record.journal.writer import Writer

_READ_S = 1.0  # between two checks of memory, stalls and ranks
_BUSY_SHARE = 0.2  # of a core: processes that use more are busy
_RANK_STEPS = 50
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Trained:
    """A process that makes steps, with the rules for its alerts."""

    def __init__(self, pid: int, arm: str) -> None:
        self.pid = pid
        self.arm = arm
        self.count = 0  # steps so far
        self.stall = Stall()
        self.not_finite = NotFinite()
        self.resident = Creep("resident memory")
        self.held = Creep("what torch holds on the GPU")
        self.last: deque[Step] = deque(maxlen=_RANK_STEPS)
        self.fresh = 0  # steps since the ranks were compared


class Activity(NamedTuple):
    """The core time that a command's processes have used up to a moment, in seconds."""

    at: float
    worked_s: float
    waited_s: float  # for a core


class Alarms:
    """Raise the alerts of one command."""

    def __init__(
        self,
        pid: int,
        contention: Contention,
        journal: Writer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pid = pid
        self._journal = journal
        self._clock = clock
        self._trained: dict[int, Trained] = {}
        self._slow_rank = SlowRank()
        self._read_at = clock()
        self._contention = contention
        self._activity: Activity | None = None  # at the last check for a stall

    def step(self, pid: int, arm: str, steps: Sequence[Step], root: Callable[[int], str]) -> None:
        """Take the new steps of a process.

        `root` returns the name of the value that goes backward before a given optimizer steps.
        """
        trained = self._trained.setdefault(pid, Trained(pid, arm))
        if not steps:
            return
        self._tell("stall", [arm], trained.stall.step(self._clock(), steps))
        for index, step in enumerate(steps):
            for owner, value in step.roots.items():
                self._tell(
                    "not finite",
                    [arm],
                    trained.not_finite.look(root(owner), trained.count + index, value),
                )
        trained.count += len(steps)
        trained.fresh += len(steps)
        trained.last.extend(steps)

    def leave(self, pid: int, arm: str, at_ns: int) -> None:
        """Note when the script of a process ended."""
        self._trained.setdefault(pid, Trained(pid, arm)).stall.leave(at_ns)

    def hear(self, pid: int | None = None) -> None:
        """Note that a process marked something else.

        Without a `pid`, note that something was printed, by any process of the command.
        """
        for trained in self._trained.values():
            if pid in (None, trained.pid):
                trained.stall.hear(self._clock())

    def hold(self, pid: int, held: float) -> None:
        """Take the number of bytes that torch holds on a GPU in a process."""
        if trained := self._trained.get(pid):
            self._tell("memory", [trained.arm], trained.held.read(trained.count, held))

    def turn(self) -> None:
        """Check what no mark shows: that marks stop coming, and what the processes use."""
        now_s = self._clock()
        if now_s - self._read_at < _READ_S:
            return
        self._read_at = now_s
        if self._contention.look():
            self._look_for_stall(now_s)
        for trained in self._trained.values():
            if (resident := resident_bytes(trained.pid)) is not None:
                self._tell("memory", [trained.arm], trained.resident.read(trained.count, resident))
        self._look_for_slow_rank()

    def _look_for_stall(self, now_s: float) -> None:
        near = [
            one for one in self._trained.values() if one.stall.is_near(now_s) and _is_there(one.pid)
        ]
        if not near:
            self._activity = None
            return
        before, seen = (
            self._activity,
            Activity(now_s, worked_s(self._pid), self._contention.cores.threads.waited_s),
        )
        self._activity = seen
        works = lacks_core = False
        if before is not None:
            works = seen.worked_s - before.worked_s > _BUSY_SHARE * (now_s - before.at)
            wanted_s = seen.worked_s - before.worked_s + seen.waited_s - before.waited_s
            lacks_core = not works and wanted_s > _BUSY_SHARE * (now_s - before.at)
            if not (works or self._contention.cores.is_known):
                lacks_core = has_high_pressure()
        is_busy = before is None or works or lacks_core
        texts: dict[str, str] = {}
        for trained in near:
            if text := trained.stall.look(now_s, is_busy=is_busy, lacks_core=lacks_core):
                texts[trained.arm] = text
        if texts:
            self._tell("stall", [*texts], next(iter(texts.values())))

    def _look_for_slow_rank(self) -> None:
        ranks = {
            trained.arm: trained for trained in self._trained.values() if "rank" in trained.arm
        }
        if len(ranks) > 1 and all(trained.fresh >= _RANK_STEPS for trained in ranks.values()):
            self._tell(
                "slow rank",
                [""],
                self._slow_rank.look({name: trained.last for name, trained in ranks.items()}),
            )
            for trained in ranks.values():
                trained.fresh = 0

    def _tell(self, subject: str, arms: list[str], text: str) -> None:
        if text:
            arm, words = in_one(arms, text)
            self._journal.append(events.Alerted(what=subject, text=words, arm=arm))


def resident_bytes(pid: int) -> int | None:
    """Return the resident memory of a process; None if /proc does not show it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return None


def _is_there(pid: int) -> bool:
    try:
        return presence.start_time(pid) is not None
    except OSError:
        return True
