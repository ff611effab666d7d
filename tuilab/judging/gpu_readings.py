"""Decide which blocks of a race on a GPU were disturbed, from the sampler's readings of that GPU.

A block is disturbed if the GPU was throttled meanwhile, or if other processes used it.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from tuilab.record.events import OWN_PROCESS, RaceStarted
from tuilab.record.gpus.own_gpus import HELD_BACK
from tuilab.record.gpus.raced_gpu import nvml_uuid, torch_uuid
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block, GpuState, Worker

_IDLE = 0x1  # bit of the throttle mask, as in nvml.h
_MIN_CLOCK_SHARE = 0.75  # of the median clock of the race; nvbench drops samples below it as well
_MAX_FOREIGN_PERCENT = 2.0  # of a GPU's time, in which other processes may keep it busy
# Half the sampler's period: a reading covers the time that is nearer to it than to the next one.
_READING_REACH_NS = 250_000_000


class GpuInterval(NamedTuple):
    """The time in which a GPU worked for a block, in nanoseconds of CLOCK_MONOTONIC."""

    begin: int
    end: int
    uuid: str  # torch's name of the GPU; empty if it is not known
    may_idle: bool = False  # the interval contains more than the timed steps


class GpuDisturbance(NamedTuple):
    """What the readings say about an interval. Without a reading, nothing is known of it."""

    is_disturbed: bool = False
    has_clocks: bool = False  # at least one reading has clocks or throttle reasons
    has_tenants: bool = False  # at least one reading says whether other processes used the GPU


def find_gpu_interval(
    summary: RunSummary, writer: str, race: RaceStarted, block: Block
) -> GpuInterval | None:
    """Return when and on which GPU a block ran; None if it did not run on a GPU.

    An arm with a process of its own has the time from the start of the process to its end.
    """
    if race.device == OWN_PROCESS:
        return _find_process_interval(summary, writer, block)
    if not (race.uuid or race.device.startswith("cuda")):
        return None
    cuda_facts = summary.cuda.get(writer) or summary.environment.get("cuda", {})
    # block.t is the end of the block.
    return GpuInterval(block.t - block.wall_ns, block.t, torch_uuid(race.uuid, cuda_facts))


def find_disturbances(
    summary: RunSummary, intervals: Sequence[GpuInterval]
) -> list[GpuDisturbance]:
    """Return what the readings say about each interval.

    The intervals of all repeats are needed together: they give the median clock of the race.
    """
    states_of_gpu: defaultdict[str, list[GpuState]] = defaultdict(list)
    for state in sorted(summary.gpu_states, key=lambda state: state.t):
        states_of_gpu[state.uuid].append(state)
    nvml_names = {}  # once for each UUID: a long race has thousands of intervals
    for interval in intervals:
        if interval.uuid not in nvml_names:
            nvml_names[interval.uuid] = nvml_uuid(interval.uuid, states_of_gpu.keys())
    states_of_interval = []
    for interval in intervals:
        states: Sequence[GpuState] = []
        if nvml_name := nvml_names[interval.uuid]:
            states = _select_states(states_of_gpu[nvml_name], interval)
        states_of_interval.append(states)
    min_clocks = _min_clocks(states_of_interval)
    return [_find_disturbance(states, min_clocks) for states in states_of_interval]


def _find_process_interval(summary: RunSummary, writer: str, block: Block) -> GpuInterval | None:
    """Return when the process of an arm ran that timed a block itself; None if it used no GPU.

    That is the process of the same repeat that was the last to start before the block ended.
    """
    repeat = summary.workers.get(writer, Worker()).repeat
    start_times = {}
    for name, worker in summary.workers.items():
        started = worker.started
        if not started or not started.arm or worker.repeat != repeat:
            continue
        if started.t < block.t:
            start_times[name] = started.t
    arm_worker = max(start_times, key=lambda name: start_times[name], default="")
    if arm_worker not in summary.cuda:
        return None
    uuid = torch_uuid("", summary.cuda[arm_worker])
    return GpuInterval(start_times[arm_worker], block.t, uuid, may_idle=True)


def _select_states(states: Sequence[GpuState], interval: GpuInterval) -> Sequence[GpuState]:
    """Return the states that cover a part of an interval. `states` are in order of time.

    A process also loads and saves. While the GPU idles for that, its low clocks mean nothing.
    """
    begin = interval.begin - _READING_REACH_NS
    end = interval.end + _READING_REACH_NS
    first = bisect_left(states, begin, key=lambda state: state.t)
    after_last = bisect_right(states, end, key=lambda state: state.t)
    selected = []
    for state in states[first:after_last]:
        is_idle = bool((state.throttle_mask or 0) & _IDLE)
        if not (interval.may_idle and is_idle):
            selected.append(state)
    return selected


def _min_clocks(states_of_interval: Sequence[Sequence[GpuState]]) -> dict[str, float]:
    """Return, by GPU, the clock in MHz below which a block counts as disturbed."""
    distinct: set[GpuState] = set()  # a state that covers two blocks counts once in the median
    for states in states_of_interval:
        distinct.update(states)
    clocks: defaultdict[str, list[float]] = defaultdict(list)
    for state in distinct:
        if state.sm_mhz is not None:
            clocks[state.uuid].append(state.sm_mhz)
    return {uuid: _MIN_CLOCK_SHARE * median(of_gpu) for uuid, of_gpu in clocks.items()}


def _find_disturbance(
    states: Sequence[GpuState], min_clocks: Mapping[str, float]
) -> GpuDisturbance:
    """Return whether any reading of an interval shows a disturbance, and what the readings contain.

    `min_clocks` has the lowest undisturbed clock of each GPU in MHz.
    """
    is_disturbed = False
    has_clocks = False
    has_tenants = False
    for state in states:
        if _is_disturbed(state, min_clocks.get(state.uuid, 0.0)):
            is_disturbed = True
        if state.sm_mhz is not None or state.throttle_mask is not None:
            has_clocks = True
        if state.foreign_percent is not None:
            has_tenants = True
    return GpuDisturbance(is_disturbed, has_clocks, has_tenants)


def _is_disturbed(state: GpuState, min_mhz: float) -> bool:
    """Return whether a reading shows a low clock, other processes at work, or throttling."""
    is_slow = state.sm_mhz is not None and state.sm_mhz < min_mhz
    foreign_percent = state.foreign_percent
    is_shared = foreign_percent is not None and foreign_percent > _MAX_FOREIGN_PERCENT
    is_throttled = bool((state.throttle_mask or 0) & HELD_BACK)
    return is_slow or is_shared or is_throttled
