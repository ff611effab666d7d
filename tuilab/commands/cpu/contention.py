"""Find out whether a command waited for cores, and who used them."""

import time
from collections.abc import Callable
from typing import NamedTuple

from tuilab.commands.cpu.core_use import CoreUse, Threads
from tuilab.probes.core_work import OTHERS_SHARE, Use, Work, read_work, usable_cores, use_between
from tuilab.record.events import CoresAwaited
from tuilab.text.display import plural

_LEAST_S = 2.0  # on a core: a command that uses less, such as a shell, is too short to judge
# If threads wait for a core during this share of the time in which they want one, times are a
# quarter longer than they need to be.
_WAITED_SHARE = 0.2
_FULL_SHARE = 0.75  # of the usable cores


class ContentionReading(NamedTuple):
    """A reading at one moment of a training."""

    read_at_s: float
    waited_s: float  # that the threads of the command have waited for a core so far
    work: Work | None


class Contention:
    """The use of the cores by a command and by others, from the first reading to the last."""

    def __init__(self, pid: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.cores = CoreUse(pid)
        self._pid = pid
        self.usable = usable_cores()
        self.first: Work | None = None
        self.last: Work | None = None
        self._has_stepped = False  # since the last reading
        self._training_began: ContentionReading | None = None
        self._training_ended: ContentionReading | None = None  # the latest reading

    def step(self) -> None:
        """Note that the command made a step: the next reading belongs to its training."""
        self._has_stepped = True

    def look(self) -> bool:
        """Read who uses the cores; return whether that was done.

        It is not done if the last reading was slow and was just now, or if /proc cannot be read.
        """
        if not self.cores.read():
            return False
        self.last = self._read()
        self.first = self.first or self.last
        if self._has_stepped:
            self._has_stepped = False
            waited_s = self.cores.threads.waited_s
            reading = ContentionReading(self._clock(), waited_s, self.last)
            self._training_began = self._training_began or reading
            self._training_ended = reading
        return True

    def in_training(self) -> CoresAwaited | None:
        """Return how long the command waited for cores while it made steps.

        None if there are fewer than two readings, or if the kernel does not count the wait.
        """
        began = self._training_began
        ended = self._training_ended
        if began is None or ended is None or ended.read_at_s <= began.read_at_s:
            return None
        if not self.cores.is_known:
            return None
        use = use_between(began.work, ended.work)
        other_cores = None
        if use is not None:
            other_cores = max(use.others, 0.0)
        return CoresAwaited(
            elapsed_s=ended.read_at_s - began.read_at_s,
            waited_s=ended.waited_s - began.waited_s,
            usable=max(len(self.usable), 1),
            others=other_cores,
        )

    def is_starved(self) -> bool:
        """Return whether the command waited long for cores.

        If so, its times differ from those on a quiet machine.
        """
        threads = self.cores.threads
        return threads.ran_s >= _LEAST_S and waited_share(threads) >= _WAITED_SHARE

    def is_starved_by_others(self) -> bool:
        """Return whether the command waited because other processes used the cores.

        False if that is not known.
        """
        if not self.is_starved():
            return False
        use = use_between(self.first, self.last)
        if use is None or not self._is_full(use):
            return False
        return use.others >= OTHERS_SHARE * len(self.usable)

    def are_cores_idle(self) -> bool:
        """Return whether the readings show cores with time left, and the command did not wait."""
        use = use_between(self.first, self.last)
        return use is not None and not self._is_full(use) and not self.is_starved()

    def sentences(self) -> list[str]:
        """Return in words who used the cores, and what that means for the times of steps.

        Empty if the command had its cores.
        """
        if not self.is_starved():
            return []
        share = 100 * waited_share(self.cores.threads)
        waited = f"the command waited for a core {share:.0f} % of the time it wanted one"
        effect = f"{waited}, so its steps took longer than they would on a quiet machine"
        use = use_between(self.first, self.last)
        if use is None or not self._is_full(use):
            return [effect]  # a limit of its control group may be the cause
        cores = plural(len(self.usable), "core")
        cause = f"the command's own threads and processes compete for {cores}"
        if self.is_starved_by_others():
            other_cores = min(use.others, len(self.usable))
            cause = f"other processes used {other_cores:.1f} of {cores}"
        return [f"the machine was busy: {cause}", effect]

    def _is_full(self, use: Use) -> bool:
        return use.all >= _FULL_SHARE * len(self.usable)

    def _read(self) -> Work | None:
        """Return the work so far; None if it cannot be read.

        The command and the process that watches it do not count as other processes.
        """
        work = read_work(self._pid, self.usable)
        if work is None:
            return None
        return work._replace(own_s=work.own_s + time.process_time())


def waited_share(threads: Threads) -> float:
    """Return the waiting time of threads as a share of the time in which they wanted a core."""
    wanted_s = threads.ran_s + threads.waited_s
    return threads.waited_s / wanted_s if wanted_s else 0.0
