"""Choose the clock that a claim is judged by: wall time, or CPU time on a disturbed machine.

The CPU time is that of the thread that makes the calls; for a command, of the thread that runs
the steps. It leaves out the time that other processes took, and so it does not see what an arm
waits for. CPU time may replace wall time only if an arm is all work of one thread: no other thread
and no GPU works for it, and the thread never waits.

Only the sensors choose. If the measured times chose, the clock that suits a claim would win.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Literal, NamedTuple

from tuilab.judging import stats
from tuilab.record.summary_parts import CALM_SHARE, Block
from tuilab.text.display import percent, show

ClockKind = Literal["wall", "cpu"]

_MAX_ELSEWHERE_SHARE = 0.01  # of the CPU time, spent by other threads of the process
_MAX_WAITING_SHARE = 0.1  # of the blocks, in which the thread gave up its core by itself
_MAX_WAITED_SHARE = 0.01  # of a command's CPU time and waiting time together
_SUBMITTING_SHARE = 0.95  # of a block: its calls did little but submit work to the GPU
# A GPU that works for more than this share of a call may keep the calls waiting: its queue is
# full. The margin to 1 is that wide because GPU clocks may fall by more than a tenth.
_MAX_HOST_BOUND_SHARE = 0.75
_MIN_HOST_BOUND_SHARE = 0.01  # below it, the calls have hardly any work for the GPU
_MAX_P_VALUE = 0.01  # for a difference between the arms to count
_MIN_REPEATS = 6  # that both arms need before their shares of a core are compared
_MIN_UNEQUAL_LOG = math.log(1.05)  # a smaller difference between the shares is no reason to doubt
_MAX_NAME = 60  # characters


class ClockChoice(NamedTuple):
    """The clock that judges a claim about commands, and why."""

    clock: ClockKind = "wall"
    # Of the steps. None if it is not known, or if the machine was quiet enough for wall time.
    disturbed_share: float | None = None
    why_wall: str = ""  # why it is wall time although the steps were disturbed


def choose_clock(
    arms: Sequence[Sequence[Block]], devices: set[str], disturbed_share: float
) -> ClockKind:
    """Return the clock for a race, from the blocks of each arm and the devices it ran on.

    It is CPU time if more than 5 % of the blocks were disturbed, the race ran on the CPU, and every
    arm is the work of one thread. Otherwise it is wall time.
    """
    if disturbed_share <= CALM_SHARE or devices != {"cpu"}:
        return "wall"
    for blocks in arms:
        if not _is_work_of_one_thread(blocks):
            return "wall"
    return "cpu"


def choose_command_clock(arms: Mapping[str, Sequence[Block]]) -> ClockChoice:
    """Return the clock for commands, from the blocks of each arm and of the control by name.

    If the steps were disturbed but an arm rules out CPU time, the choice names the arm and the
    reason.
    """
    every_block: list[Block] = []
    for blocks in arms.values():
        every_block += blocks
    disturbed_share = _disturbed_steps_share(every_block)
    if disturbed_share is None or disturbed_share <= CALM_SHARE:
        return ClockChoice()
    for name, blocks in arms.items():
        if obstacle := _describe_command_obstacle(blocks):
            return ClockChoice("wall", disturbed_share, f"{show(name, _MAX_NAME)} {obstacle}")
    return ClockChoice("cpu", disturbed_share)


def is_single_threaded(thread_ns: float, total_ns: float, waited_ns: float) -> bool:
    """Return whether steps are the work of one thread that never waits.

    `thread_ns` is the CPU time of that thread, `total_ns` that of all threads and processes.
    """
    return not _describe_obstacle(thread_ns, total_ns, waited_ns)


def find_starved_arm(
    over: Mapping[str, Block], under: Mapping[str, Block]
) -> tuple[str, str] | None:
    """Return "over" and "under" in the order of their shares of a core, the smaller one first.

    None if the difference is small or may be chance. The blocks of an arm are given by repeat.
    An arm can lose its core by its own doing, such as a low priority or a quota. CPU time does
    not show that loss.
    """
    differences = []
    for repeat in over.keys() & under.keys():
        differences.append(_core_share_log(over[repeat]) - _core_share_log(under[repeat]))
    if len(differences) < _MIN_REPEATS or not all(map(math.isfinite, differences)):
        return None
    center = fmean(differences)
    if abs(center) < _MIN_UNEQUAL_LOG:
        return None
    error = stats.standard_error(differences)
    if stats.p_value(abs(center), error, len(differences) - 1) > _MAX_P_VALUE:
        return None
    if center < 0:
        return "over", "under"
    return "under", "over"


def step_s(block: Block, clock: ClockKind) -> float:
    """Return the time of one call in seconds."""
    if clock == "wall":
        return block.step_s
    thread_s = block.thread_s
    assert thread_s is not None  # CPU time is only chosen if every block has it
    return thread_s


def host_bound_share(blocks: Sequence[Block], gpu_ns: Sequence[int]) -> float | None:
    """Return which share of an arm's time the GPU works at most; None if it is not host-bound.

    An arm is host-bound if two things hold. In most of its blocks, the calls took as long to
    submit their work as the block lasted. And the GPU needs less time for that work than the
    calls (`gpu_ns`, measured by each process). The second matters because calls also take long if
    the queue of a busy GPU is full and keeps them waiting.
    """
    submitting_blocks = 0
    for block in blocks:
        if (block.submitted_ns or 0) >= _SUBMITTING_SHARE * block.wall_ns:
            submitting_blocks += 1
    if not gpu_ns or submitting_blocks <= len(blocks) / 2:
        return None
    call_ns = median(block.wall_ns / block.loops for block in blocks)
    share = median(gpu_ns) / call_ns
    return share if _MIN_HOST_BOUND_SHARE <= share <= _MAX_HOST_BOUND_SHARE else None


# ---- whether CPU time may replace wall time


def _is_work_of_one_thread(blocks: Sequence[Block]) -> bool:
    """Return whether one thread did all the CPU work of an arm, and seldom gave up its core itself.

    False as well if there are no blocks, or if a block has no CPU times of its thread.
    """
    if not blocks:
        return False
    total_ns = 0
    thread_ns = 0
    waiting_blocks = 0
    for block in blocks:
        if not block.thread_ns or block.waits is None:
            return False
        total_ns += block.cpu_ns
        thread_ns += block.thread_ns
        if block.waits:
            waiting_blocks += 1
    elsewhere_ns = total_ns - thread_ns
    if elsewhere_ns > _MAX_ELSEWHERE_SHARE * total_ns:
        return False
    return waiting_blocks <= _MAX_WAITING_SHARE * len(blocks)


def _disturbed_steps_share(blocks: Sequence[Block]) -> float | None:
    """Return the share of the steps that were disturbed; None if a process does not know."""
    steps = 0
    disturbed_steps = 0
    for block in blocks:
        if not block.steps or block.disturbed_steps is None:
            return None
        steps += block.steps
        disturbed_steps += block.disturbed_steps
    return disturbed_steps / steps if steps else None


def _describe_command_obstacle(blocks: Sequence[Block]) -> str:
    """Return why CPU time cannot stand for the time of the steps of a command, or "".

    The words follow the name of an arm: "has 2 workers of a DataLoader", which help it.
    """
    thread_ns = 0
    total_ns = 0
    waited_ns = 0
    for block in blocks:
        if not block.thread_ns or block.waited_ns is None:
            return "has no CPU time of its own"
        thread_ns += block.thread_ns
        total_ns += block.cpu_ns
        waited_ns += block.waited_ns
    for block in blocks:
        if block.helped_by:
            return f"has {show(block.helped_by, _MAX_NAME)}"
    return _describe_obstacle(thread_ns, total_ns, waited_ns)


def _describe_obstacle(thread_ns: float, total_ns: float, waited_ns: float) -> str:
    """Return why these times are not those of one thread that never waits, or ""."""
    if thread_ns <= 0:
        return "has no CPU time of its own"
    if total_ns - thread_ns > _MAX_ELSEWHERE_SHARE * total_ns:
        return "works on more than one thread or process"
    waited_share = waited_ns / (thread_ns + waited_ns)
    if waited_share > _MAX_WAITED_SHARE:
        return f"waits {percent(waited_share)} of its time for something other than a core"
    return ""


def _core_share_log(block: Block) -> float:
    """Return the log of the share of a core that a process got; -inf if it got nothing."""
    if not block.thread_ns or not block.wall_ns:
        return -math.inf
    return math.log(block.thread_ns / block.wall_ns)
