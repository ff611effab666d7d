"""Run one process of a tuning, and find out how it ended and what it measured."""

import signal
from pathlib import Path
from typing import NamedTuple

from tuilab.commands.ab.step_time import Steady, cpu_of, most_steps, slowest, steady_of
from tuilab.commands.facts.memory_shortage import Shortage
from tuilab.commands.run_command import CommandEnd, how_it_ended, run_watched
from tuilab.commands.watched import Lane
from tuilab.engine.messages import CommandArm, CommandOrder
from tuilab.engine.processes import end_descendants
from tuilab.record.journal.writer import Writer
from tuilab.record.tuning.outcomes import Outcome
from tuilab.text.display import plural
from tuilab.text.words import seconds, size

_GRACE_S = 3.0  # for processes that the command left behind
_MEMORY_ERRORS = ("OutOfMemoryError", "MemoryError")
# What torch prints if the memory of the host is used up.
_MEMORY_WORDS = ("DefaultCPUAllocator", "out of memory", "Cannot allocate memory")


class Trial(NamedTuple):
    """One process of a tuning that has ended."""

    ended: CommandEnd
    lane: Lane | None  # the process whose steps take longest; None if none can be timed
    steady: Steady | None  # its steps after the warm-up
    outcome: str = ""  # why it measured nothing; empty: it did
    why: str = ""

    @property
    def peak_bytes(self) -> int:
        """The most memory that the process held: on the GPU if it used one, else on the host."""
        return self.ended.watched.gpu_peak_bytes or self.ended.peak_bytes

    @property
    def step_s(self) -> float | None:
        return self.steady.step_s if self.steady else None

    @property
    def cpu_s(self) -> float | None:
        """The CPU time of a step, of all its processes; None if it was not read."""
        if self.lane is None or self.steady is None:
            return None
        cpu = cpu_of(self.lane, self.steady)
        return cpu.whole_ns / 1e9 if cpu else None


def run_trial(
    command: CommandOrder,
    arm: CommandArm,
    marks: Path,
    journal: Writer,
    *,
    label: str,
    steps: int,
    limit_s: float,
    wants_facts: bool = False,
) -> Trial:
    """Run an arm in a fresh process until its last step, or for `limit_s`.

    Whatever the process leaves behind is ended before this returns. Raises CannotStart.
    """
    ended = run_watched(
        command,
        marks,
        journal,
        arm,
        label,
        limit_s=limit_s,
        may_fail=True,
        last_step=steps,
        has_facts=wants_facts,
    )
    end_descendants(_GRACE_S)
    lane = slowest(ended)
    steady = steady_of(lane) if lane else None
    outcome, why = _find_failure(ended, steady, limit_s)
    return Trial(ended, lane, steady, outcome, why)


def _find_failure(ended: CommandEnd, steady: Steady | None, limit_s: float) -> tuple[str, str]:
    """Return the outcome of a process that measured nothing, and its reason; two empty strings."""
    if ended.is_over_time:
        steps = plural(most_steps(ended), "step")
        return Outcome.OVER_TIME, f"stopped after {seconds(limit_s)}, with {steps}"
    if ended.code and _is_out_of_memory(ended):
        return Outcome.OUT_OF_MEMORY, _describe_shortage(ended.watched.shortage)
    failure = how_it_ended(ended, is_seen=False)
    if failure:
        if ended.failure:
            failure = f"{ended.failure.type}: {ended.failure.message}"
        return Outcome.FAILED, failure
    if steady is None:
        count = most_steps(ended)
        if not count:
            return Outcome.FAILED, f"no training step was seen: {ended.watched.why_unseen()}"
        return Outcome.FAILED, f"{plural(count, 'step')} seen, which is too few to time a step"
    return "", ""


def _is_out_of_memory(ended: CommandEnd) -> bool:
    """Return whether a process failed because it had too little memory.

    The kernel kills a process with SIGKILL if the host has no memory left, and nobody else does so
    in a tuning, except at its limit of time.
    """
    if ended.watched.shortage or ended.code == -signal.SIGKILL:
        return True
    if ended.failure is None:
        return False
    if ended.failure.type.rpartition(".")[2] in _MEMORY_ERRORS:
        return True
    return any(words in ended.failure.message for words in _MEMORY_WORDS)


def _describe_shortage(shortage: Shortage | None) -> str:
    """Return how much memory was missing, as far as it is known."""
    if shortage is None:
        return "the process needed more memory than there was; how much is not known"
    missing = max(shortage.requested - shortage.free, 0)
    words = (
        f"{size(shortage.requested)} more were wanted with {size(shortage.allocated)} in use and "
        f"{size(shortage.free)} free"
    )
    if missing:
        words += f": at least {size(missing)} were missing"
    return words
