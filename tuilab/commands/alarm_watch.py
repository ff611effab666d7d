"""Watch for events that are worth an alert while a command trains, and record each at once.

A mark is an event, such as a step, that the watcher in a process writes to a file. An arm is here
the label of the curves of one process: empty, `process 2` or `rank 0`.
"""

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
_RANK_STEPS = 50  # of each rank, for a comparison; the same as in alarm_rules.py
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class TrainingProcess:
    """A process that makes steps, with the rules for its alerts."""

    def __init__(self, pid: int, arm: str) -> None:
        self.pid = pid
        self.arm = arm
        self.count = 0  # steps so far
        self.stall = Stall()
        self.not_finite = NotFinite()
        self.has_skipped = False  # whether GradScaler has skipped a step
        self.resident = Creep("resident memory")
        self.held = Creep("what torch holds on the GPU")
        self.last: deque[Step] = deque(maxlen=_RANK_STEPS)  # whose parts were timed
        self.fresh = 0  # such steps since the ranks were compared


class Activity(NamedTuple):
    """The core time that a command's processes have used up to a moment, in seconds."""

    read_at_s: float
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
        self._processes: dict[int, TrainingProcess] = {}
        self._slow_rank = SlowRank()
        self._read_at = clock()
        self._contention = contention
        self._activity: Activity | None = None  # at the last check for a stall

    def step(self, pid: int, arm: str, steps: Sequence[Step], root: Callable[[int], str]) -> None:
        """Take the new steps of a process, and record alerts about them.

        The alerts are that steps continue after a stall, and that a root is not finite. `root`
        returns the name of the value that goes backward before a given optimizer steps.
        """
        process = self._processes.setdefault(pid, TrainingProcess(pid, arm))
        if not steps:
            return
        self._alert("stall", [arm], process.stall.step(self._clock(), steps))
        for number, step in enumerate(steps, process.count):
            if step.skipped:  # often that of this value
                process.has_skipped = True
            for owner, value in step.roots.items():
                text = process.not_finite.look(
                    root(owner), number, value, can_skip=process.has_skipped
                )
                self._alert("not finite", [arm], text)
        process.count += len(steps)
        steps_with_parts = [step for step in steps if step.has_parts]
        process.fresh += len(steps_with_parts)
        process.last.extend(steps_with_parts)

    def compiled(self, arm: str, text: str) -> None:
        """Record that a function is compiled again and again; an empty text is no alert."""
        self._alert("recompiles", [arm], text)

    def leave(self, pid: int, arm: str, at_ns: int) -> None:
        """Note when the script of a process ended; after that, a missing step is no stall."""
        process = self._processes.setdefault(pid, TrainingProcess(pid, arm))
        process.stall.leave(at_ns)

    def hear(self, pid: int | None = None) -> None:
        """Note that a process marked something else.

        Without a `pid`, note that something was printed, by any process of the command.
        """
        for process in self._processes.values():
            if pid in (None, process.pid):
                process.stall.hear(self._clock())

    def hold(self, pid: int, held_bytes: float) -> None:
        """Take how many bytes torch holds on a GPU; ignored for a process without steps."""
        process = self._processes.get(pid)
        if process is not None:
            self._alert("memory", [process.arm], process.held.read(process.count, held_bytes))

    def turn(self) -> None:
        """Check, at most once a second, what no mark shows: that marks stop coming, and memory.

        Ranks are compared as well. What is found is recorded as an alert.
        """
        now_s = self._clock()
        if now_s - self._read_at < _READ_S:
            return
        self._read_at = now_s
        if self._contention.look():
            self._look_for_stall(now_s)
        for process in self._processes.values():
            resident = resident_bytes(process.pid)
            if resident is not None:
                text = process.resident.read(process.count, resident)
                self._alert("memory", [process.arm], text)
        self._look_for_slow_rank()

    def _look_for_stall(self, now_s: float) -> None:
        """Record an alert if a living process has stopped making steps.

        Whether the processes of the command worked meanwhile is known from the second check on.
        """
        suspects = []
        for process in self._processes.values():
            if process.stall.is_near(now_s) and _is_alive(process.pid):
                suspects.append(process)
        if not suspects:
            self._activity = None
            return
        cores = self._contention.cores
        previous = self._activity
        self._activity = Activity(now_s, worked_s(self._pid), cores.threads.waited_s)
        # Before the second check, nobody knows what the processes do, so they count as busy.
        is_busy = True
        lacks_core = False
        if previous is not None:
            busy_s = _BUSY_SHARE * (now_s - previous.read_at_s)
            work_s = self._activity.worked_s - previous.worked_s
            works = work_s > busy_s
            if not works and cores.is_known:
                demand_s = work_s + self._activity.waited_s - previous.waited_s
                lacks_core = demand_s > busy_s
            elif not works:
                lacks_core = has_high_pressure()
            is_busy = works or lacks_core
        texts: dict[str, str] = {}
        for process in suspects:
            text = process.stall.look(now_s, is_busy=is_busy, lacks_core=lacks_core)
            if text:
                texts[process.arm] = text
        if texts:
            first_text = next(iter(texts.values()))
            self._alert("stall", [*texts], first_text)

    def _look_for_slow_rank(self) -> None:
        """Compare the ranks if each has made _RANK_STEPS new steps; record a slow one."""
        ranks: dict[str, TrainingProcess] = {}
        for process in self._processes.values():
            if "rank" in process.arm:
                ranks[process.arm] = process
        if len(ranks) < 2:
            return
        if any(process.fresh < _RANK_STEPS for process in ranks.values()):
            return
        last_steps = {name: process.last for name, process in ranks.items()}
        self._alert("slow rank", [""], self._slow_rank.look(last_steps))
        for process in ranks.values():
            process.fresh = 0

    def _alert(self, subject: str, arms: list[str], text: str) -> None:
        """Record an alert of these arms; an empty text means that there is none."""
        if not text:
            return
        arm, alert = in_one(arms, text)
        self._journal.append(events.Alerted(what=subject, text=alert, arm=arm))


def resident_bytes(pid: int) -> int | None:
    """Return the resident memory of a process; None if /proc does not show it."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return int(fields[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return None


def _is_alive(pid: int) -> bool:
    """Say whether a process lives; True if that is unknown."""
    try:
        return presence.start_time(pid) is not None
    except OSError:
        return True
