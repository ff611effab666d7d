"""What a claim is judged by: the wall clock, or the CPU time of the thread that made the calls where the wall is disturbed.

Of an arm that is a command, the thread is the one that steps, and what counts as disturbed is a step.

CPU time leaves out what others took, and so does not see what the arms wait for. It stands in for the wall clock only where an
arm is all work of one thread: nothing of it ran elsewhere, on an accelerator or on another thread, and it never waited. The
sensors alone choose, never the times: else whichever measure suits would be found.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Literal, NamedTuple

from tuilab.judging import stats
from tuilab.record.parts import CALM_SHARE, Block
from tuilab.text import percent, show

Measure = Literal["wall", "cpu"]

_MOST_ELSEWHERE = 0.01  # of the CPU time, of other threads of the process
_SUBMITTING = 0.95  # of a block, in which the GPU was told what to do
_KEPT_UP = 0.75  # of the time of a call, that a GPU works which waits for the calls; clocks may fall by more than a tenth
_NO_WORK = 0.01  # of it, below which the calls have hardly anything for the GPU to do
_MOST_WAITING = 0.1  # of the blocks, in which the thread gave its core away by itself
_MOST_WAITED = 0.01  # of the CPU time and the waiting of the steps of a command
_RARE = 0.01  # a chance, below which it is none
_LEAST_UNITS = 6  # processes of an arm, to compare what they got of a core
_UNEQUAL = math.log(1.05)  # times as much of a core as the other arm: less is no reason to doubt


class Choice(NamedTuple):
    """The clock that a claim about commands is judged by, and why."""

    measure: Measure = "wall"
    disturbed_share: float | None = None  # of the steps; None: not known, or so few that the wall clock is the better one
    why_wall: str = ""  # though so many steps were disturbed


def choose(arms: Sequence[Sequence[Block]], devices: set[str], disturbed_share: float) -> Measure:
    """Choose for two arms, from their blocks of all repeats and the devices they were raced on."""
    if disturbed_share <= CALM_SHARE or devices != {"cpu"}:
        return "wall"
    return "cpu" if all(_is_work_of_one_thread(blocks) for blocks in arms) else "wall"


def choose_for_commands(arms: Mapping[str, Sequence[Block]]) -> Choice:
    """Choose for the arms of a claim and its control, by name, from the blocks of all repeats."""
    share = _disturbed_steps_share([block for blocks in arms.values() for block in blocks])
    if share is None or share <= CALM_SHARE:
        return Choice()
    for name, blocks in arms.items():
        if reason := _why_not_on_cpu(blocks):
            return Choice("wall", share, f"{show(name, 60)} {reason}")
    return Choice("cpu", share)


def is_of_one_thread(thread_ns: float, whole_ns: float, waited_ns: float) -> bool:
    """Say whether steps are the work of one thread that never waits, by its CPU time and that of all who take part."""
    return not _why_not_of_one_thread(thread_ns, whole_ns, waited_ns)


def unequal_cores(over: Mapping[str, Block], under: Mapping[str, Block]) -> tuple[str, str] | None:
    """Return which of "over" and "under" got less of a core than the other in the same repeats, by more than chance.

    CPU time says nothing of what an arm loses by its own doing, such as a lower priority or a quota.
    """
    differences = []
    for repeat in over.keys() & under.keys():
        differences.append(_core_log(over[repeat]) - _core_log(under[repeat]))
    if len(differences) < _LEAST_UNITS or not all(map(math.isfinite, differences)):
        return None
    center = fmean(differences)
    if abs(center) < _UNEQUAL:
        return None
    if stats.p_value(abs(center), stats.standard_error(differences), len(differences) - 1) > _RARE:
        return None
    return ("over", "under") if center < 0 else ("under", "over")


def step_s(block: Block, measure: Measure) -> float:
    """Return the time of one call."""
    if measure == "wall":
        return block.step_s
    thread_s = block.thread_s
    assert thread_s is not None  # else it would not have been chosen
    return thread_s


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


def _disturbed_steps_share(blocks: Sequence[Block]) -> float | None:
    """Return the share of the steps that were disturbed; None if that is not known of all processes."""
    steps = 0
    disturbed = 0
    for block in blocks:
        if not block.steps or block.disturbed_steps is None:
            return None
        steps += block.steps
        disturbed += block.disturbed_steps
    return disturbed / steps if steps else None


def _why_not_on_cpu(blocks: Sequence[Block]) -> str:
    """Return why the CPU time of a thread is not what the steps of an arm take, or nothing."""
    if any(not block.thread_ns or block.waited_ns is None for block in blocks):
        return "has no CPU time of its own"
    helpers = [block.helped_by for block in blocks if block.helped_by]
    if helpers:
        return f"has {show(helpers[0], 60)}"
    thread_ns = sum(block.thread_ns or 0 for block in blocks)
    return _why_not_of_one_thread(
        thread_ns, sum(block.cpu_ns for block in blocks), sum(block.waited_ns or 0 for block in blocks)
    )


def _why_not_of_one_thread(thread_ns: float, whole_ns: float, waited_ns: float) -> str:
    if thread_ns <= 0:
        return "has no CPU time of its own"
    if whole_ns - thread_ns > _MOST_ELSEWHERE * whole_ns:
        return "works on more than one thread or process"
    waited_share = waited_ns / (thread_ns + waited_ns)
    if waited_share > _MOST_WAITED:
        return f"waits for {percent(waited_share)} of its time"
    return ""


def _core_log(block: Block) -> float:
    """Return the log of the share of a core that a process got."""
    return math.log(block.thread_ns / block.wall_ns) if block.thread_ns and block.wall_ns else -math.inf
