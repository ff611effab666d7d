"""Times one block: calls of a function, from an idle device until the device has done all of them.

On a GPU, the calls are queued without waiting in between.
"""

import math
import resource
import time
from collections.abc import Callable
from typing import NamedTuple

from tuilab.lab.device.interface import Clock, Device

Call = Callable[[], object]

_DELAY = 0.05  # about, of the control with a known delay
_BLOCK_S = {"cpu": 0.010, "cuda": 0.050}
_CALM_BLOCKS = 3  # are timed to find the pace of an arm
_CALM_TIME = 10  # blocks' time for that, at most: long calls are called less often
_MANY = 20  # from 20 calls a block on, one extra call is about the known delay
_NAP_S = 0.005  # in which the CPU time of other threads is measured
# OpenBLAS spins for some 0.1 s, libgomp for less; a thread of the scenario may work for ever.
_PATIENCE_S = 0.5
_SPINNING_CORES = 0.1  # fewer busy cores mean that the other threads rest


class Timed(NamedTuple):
    """The times of a block in nanoseconds; the last two are None on the CPU."""

    wall_ns: int  # until the device had done all of it
    cpu_ns: int  # of all threads of this process
    thread_ns: int  # of the calling thread
    waits: int | None  # how often that thread gave its core away by itself; None if not counted
    stream_ns: int | None = None  # between its first and last mark in the device's current stream
    submitted_ns: int | None = None  # until the last call had returned

    def share(self, threads: int) -> float:
        """Return the CPU time as a share of the wall time.

        For an arm on one thread it is that thread's CPU time, because a pool may still spin next to
        it.
        """
        cpu_ns = self.thread_ns if threads == 1 else self.cpu_ns
        return cpu_ns / self.wall_ns


class Pace(NamedTuple):
    """The pace of a function, found before its race."""

    loops: int  # calls that fill a block
    step_s: float
    calm_share: float  # CPU time of wall time when nothing interferes


def calibrate(call: Call, device: Device, threads: int = 1) -> Pace:
    """Find the pace of a function from a few blocks; on a busy machine the calmest block counts."""
    goal_ns = _BLOCK_S[device.type] * 1e9
    tried_loops, long_blocks, short_blocks = _fill(call, device, goal_ns / 2)
    loops = math.ceil(tried_loops * goal_ns / long_blocks[-1].wall_ns)
    blocks = long_blocks if loops == tried_loops else []
    while len(blocks) < _CALM_BLOCKS:
        if sum(block.wall_ns for block in blocks) >= _CALM_TIME * goal_ns:
            break
        blocks.append(time_block(call, loops, device))
    step_s = min(block.wall_ns for block in blocks) / loops / 1e9
    # In shorter blocks, reading the clocks is a part of the time.
    usable_blocks = [block for block in short_blocks if block.wall_ns > goal_ns / 10]
    return Pace(loops, step_s, _calm_share(blocks + usable_blocks, threads))


def _fill(call: Call, device: Device, least_ns: float) -> tuple[int, list[Timed], list[Timed]]:
    """Find a number of calls that takes so long.

    Returns the number, two blocks that took so long, and the blocks before them. One long block is
    not enough: a second call of a function may still compile it, or record a graph.
    """
    loops = 1
    short_blocks: list[Timed] = []
    while True:
        long_blocks: list[Timed] = []
        for _ in range(2):
            block = time_block(call, loops, device)
            if block.wall_ns < least_ns:
                break
            long_blocks.append(block)
        if len(long_blocks) == 2:
            return loops, long_blocks, short_blocks
        short_blocks.append(block)
        loops *= 4 if block.wall_ns < least_ns / 4 else 2


def _calm_share(blocks: list[Timed], threads: int) -> float:
    """Return the CPU time of an undisturbed arm as a share of its wall time.

    One thread that never waits is on its core all the time.
    """
    if threads == 1 and any(block.waits == 0 for block in blocks):
        return 1.0
    return min(max(block.share(threads) for block in blocks), threads)


def cores_of_others() -> float:
    """Return how many cores the other threads of this process use."""
    began_ns = time.perf_counter_ns()
    before_ns = time.process_time_ns() - time.thread_time_ns()
    time.sleep(_NAP_S)
    used_ns = time.process_time_ns() - time.thread_time_ns() - before_ns
    return used_ns / (time.perf_counter_ns() - began_ns)


def wait_for_pools(cores: Callable[[], float] = cores_of_others) -> None:
    """Wait until the other threads of this process rest; a pool spins on after its work."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while cores() > _SPINNING_CORES and time.monotonic() < deadline_s:
        pass


def known_delay(loops: int) -> float:
    """Return the delay of the delayed control, as a share of a block of `loops` calls."""
    return _extra_calls(loops) / loops or _DELAY


def time_block(call: Call, loops: int, device: Device, delay: Clock | None = None) -> Timed:
    """Time `loops` calls, with the known delay on top if `delay` is given.

    The delay is one or more extra calls if there are many calls, else a pause. `delay` is the clock
    for the pause. An arm that is on its core all the time uses the clock of its thread: on a busy
    machine, a share of the wall time would be a greater share of the arm's own time.
    """
    extra = _extra_calls(loops) if delay else 0
    device.wait()
    device.begin()
    delay_began_ns = 0
    if delay:
        delay_began_ns = delay()
    waits_before = count_waits()
    cpu_ns = time.process_time_ns()
    thread_ns = time.thread_time_ns()
    wall_ns = time.perf_counter_ns()
    for _ in range(loops + extra):
        call()
    submitted_ns = time.perf_counter_ns() - wall_ns
    if delay and not extra:
        device.wait()  # else the pause would overlap with work on other streams
        device.delay((delay() - delay_began_ns) * _DELAY, delay)
    device.end()
    device.wait()
    wall_ns = time.perf_counter_ns() - wall_ns
    thread_ns = time.thread_time_ns() - thread_ns
    cpu_ns = time.process_time_ns() - cpu_ns
    waits = None
    if waits_before is not None:
        waits = (count_waits() or 0) - waits_before
    stream_ns = device.stream_ns()
    if stream_ns is None:  # on the CPU
        return Timed(wall_ns, cpu_ns, thread_ns, waits)
    return Timed(wall_ns, cpu_ns, thread_ns, waits, stream_ns, submitted_ns)


def count_waits() -> int | None:
    """Return how often the calling thread gave its core away: for a lock, a disk, a sleep.

    None if the kernel does not count it.
    """
    # A thread that comes to this line has waited before, so a count of 0 means that none is kept.
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw or None


def _extra_calls(loops: int) -> int:
    """Return how many more calls are about the known delay; 0 if the calls are too few."""
    return round(loops * _DELAY) if loops >= _MANY else 0
