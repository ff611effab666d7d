"""Selects the clock that a verdict was judged on, and the times of the arms on that clock.

A verdict rests on the wall clock or, on a disturbed machine, on the CPU time of the thread that
made the calls. Where any verdict of a run rests on CPU time, a view names the clock of each time.
It shows the judged clock first and the other clock second.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tuilab.record.blocks import counted, in_order, measure_of, scale_of
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block, Claim
from tuilab.record.verdicts import Verdict

WALL = "wall"
CPU = "cpu"
CLOCK_NAMES = {WALL: "wall clock", CPU: "CPU time"}  # for people


class ArmTimes(NamedTuple):
    """The times of a call of one arm, in each block that counts, on the judged clock."""

    times: list[float]
    clock: str = WALL
    # on the other clock; empty if not recorded, or if no verdict of the run rests on CPU time
    others: Sequence[float] = ()
    judged: tuple[str, ...] = ()  # the clocks that verdicts about the arm rest on
    is_named: bool = False  # a verdict of the run rests on CPU time, so views name the clock

    @property
    def other_clock(self) -> str:
        """The clock of `others`."""
        return WALL if self.clock == CPU else CPU

    @property
    def is_judged_on_both(self) -> bool:
        """Whether one verdict about the arm rests on the wall clock and another on CPU time."""
        return len(self.judged) > 1 and bool(self.others)

    def on(self, clock: str) -> Sequence[float]:
        """Return the times on a clock; none if they were not recorded."""
        return self.times if clock == self.clock else self.others


def clock_of(claim: Claim) -> str:
    """Return the clock that the verdict on a ratio claim rests on; empty if there is none."""
    verdict = claim.verdict
    if claim.declared is None or verdict is None or verdict.verdict == Verdict.NOT_TESTABLE:
        return ""
    if verdict.measure == CPU:
        return CPU
    return WALL if verdict.estimate is not None else ""


def judged_clocks(summary: RunSummary) -> dict[str, tuple[str, ...]]:
    """Return, by arm, the clocks that the verdicts about it rest on, in the order of the claims."""
    judged: dict[str, tuple[str, ...]] = {}
    for claim in summary.claims.values():
        clock = clock_of(claim)
        if not clock or claim.declared is None:
            continue
        for arm in (claim.declared.over, claim.declared.under):
            clocks = judged.get(arm, ())
            if clock not in clocks:
                judged[arm] = (*clocks, clock)
    return judged


def arm_times(summary: RunSummary) -> dict[str, ArmTimes]:
    """Return, by arm, the times of a call in each block that counts, of all repeats.

    If the run measured another quantity, it is returned instead.
    """
    scale = scale_of(measure_of(summary).unit)
    judged = judged_clocks(summary)
    all_clocks: set[str] = set()
    for clocks in judged.values():
        all_clocks.update(clocks)
    times: dict[str, ArmTimes] = {}
    for arm, blocks in _counted_by_arm(summary).items():
        wall = [block.step_s * scale for block in blocks]
        if CPU not in all_clocks:
            times[arm] = ArmTimes(wall)
            continue
        cpu = cpu_times(blocks)
        clocks = judged.get(arm, ())
        if clocks:
            is_cpu_first = clocks[0] == CPU
        else:
            is_cpu_first = all_clocks == {CPU}
        if is_cpu_first and cpu:
            times[arm] = ArmTimes(cpu, CPU, wall, clocks, is_named=True)
        else:
            times[arm] = ArmTimes(wall, WALL, cpu, clocks, is_named=True)
    return times


def cpu_times_of(summary: RunSummary) -> dict[str, list[float]]:
    """Return, by arm, the CPU times of a call in each block that counts, if they were recorded."""
    times_of_arms = {}
    for arm, blocks in _counted_by_arm(summary).items():
        times = cpu_times(blocks)
        if times:
            times_of_arms[arm] = times
    return times_of_arms


def _counted_by_arm(summary: RunSummary) -> dict[str, list[Block]]:
    """Return, by arm, the blocks that count; an arm without any is left out."""
    blocks_by_arm: dict[str, list[Block]] = {}
    for (_, arm), blocks in in_order(summary).items():
        counted_blocks = counted(blocks)
        if counted_blocks:
            blocks_by_arm.setdefault(arm, []).extend(counted_blocks)
    return blocks_by_arm


def cpu_times(blocks: Sequence[Block]) -> list[float]:
    """Return the CPU time of a call in each block; empty if an old journal lacks one."""
    times = []
    for block in blocks:
        thread_s = block.thread_s
        if thread_s is None:
            return []
        times.append(thread_s)
    return times
