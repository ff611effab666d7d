"""What a claim is judged by: the wall clock, or the CPU time of the thread that made the calls where the wall is disturbed.

CPU time leaves out what others took, and so does not see what the arms wait for. It stands in for the wall clock only where an
arm is all work of one thread: nothing of it ran elsewhere, on an accelerator or on another thread, and it never waited. The
sensors alone choose, never the times: else whichever measure suits would be found.
"""

from collections.abc import Sequence
from statistics import median
from typing import Literal

from tuilab.record.parts import Block

Measure = Literal["wall", "cpu"]

CALM_SHARE = 0.05  # of the blocks that may be disturbed before the wall clock is left
_MOST_ELSEWHERE = 0.01  # of the CPU time, of other threads of the process
_SUBMITTING = 0.95  # of a block, in which the GPU was told what to do
_KEPT_UP = 0.75  # of the time of a call, that a GPU works which waits for the calls; clocks may fall by more than a tenth
_NO_WORK = 0.01  # of it, below which the calls have hardly anything for the GPU to do
_MOST_WAITING = 0.1  # of the blocks, in which the thread gave its core away by itself


def choose(arms: Sequence[Sequence[Block]], devices: set[str], disturbed_share: float) -> Measure:
    """Choose for two arms, from their blocks of all repeats and the devices they were raced on."""
    if disturbed_share <= CALM_SHARE or devices != {"cpu"}:
        return "wall"
    return "cpu" if all(_is_work_of_one_thread(blocks) for blocks in arms) else "wall"


def step_s(block: Block, measure: Measure) -> float:
    """Return the time of one call."""
    if measure == "wall":
        return block.step_s
    assert block.thread_ns is not None  # else it would not have been chosen
    return block.thread_ns / block.loops / 1e9


def host_bound_share(blocks: Sequence[Block], gpu_ns: Sequence[int]) -> float | None:
    """Return of an arm that the GPU waits for which share of its time the GPU works at most; None of another arm.

    Most of its blocks took as long as its calls did to tell the GPU what to do, which needs less by itself, as each process has
    found. Where the GPU needs as long, telling may take as long as well: the queue is full, and holds the calls back.
    """
    submitting = sum((block.submitted_ns or 0) >= _SUBMITTING * block.wall_ns for block in blocks)
    if not gpu_ns or submitting <= len(blocks) / 2:
        return None
    share = median(gpu_ns) / median(block.wall_ns / block.loops for block in blocks)
    return share if _NO_WORK <= share <= _KEPT_UP else None


def _is_work_of_one_thread(blocks: Sequence[Block]) -> bool:
    if not blocks or any(not block.thread_ns or block.waits is None for block in blocks):
        return False
    whole = sum(block.cpu_ns for block in blocks)
    elsewhere = whole - sum(block.thread_ns or 0 for block in blocks)
    waiting = sum(bool(block.waits) for block in blocks)
    return elsewhere <= _MOST_ELSEWHERE * whole and waiting <= _MOST_WAITING * len(blocks)
