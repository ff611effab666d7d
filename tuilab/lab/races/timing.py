"""Times one block: calls of a function, from when the device has nothing to do until it has done all of them.

A GPU is told and not waited for in between.
"""

import math
import resource
import time
from collections.abc import Callable
from typing import NamedTuple

from tuilab.lab.device.interface import Clock, Device

Call = Callable[[], object]

_DELAY = 0.05  # of the control with a known delay, about
_BLOCK_S = {"cpu": 0.010, "cuda": 0.050}
_CALM_BLOCKS = 3
_CALM_SHARE = 10  # times as long as a block is to be: calls that take longer are called less often
_MANY = 20  # calls, of which one is about the known delay
_NAP_S = 0.005
_PATIENCE_S = 0.5  # OpenBLAS spins for some 0.1 s, libgomp for less; a thread of the scenario may work for ever
_SPINNING_CORES = 0.1


class Timed(NamedTuple):
    """The times of a block in nanoseconds; the last two are None on the CPU."""

    wall_ns: int  # until the device had done all of it
    cpu_ns: int  # of all threads of this process
    thread_ns: int  # of the thread that made the calls
    waits: (
        int | None
    )  # times that this thread gave its core away by itself; None where the kernel does not count them
    stream_ns: int | None = (
        None  # between its first and its last mark in the current stream of the device
    )
    submitted_ns: int | None = None  # until the last call had returned

    def share(self, threads: int) -> float:
        """Return the CPU time of wall time: of an arm on one thread that of this thread, as a pool may still spin beside it."""
        return (self.thread_ns if threads == 1 else self.cpu_ns) / self.wall_ns


class Pace(NamedTuple):
    """What is known of a function before it is raced."""

    loops: int  # calls that fill a block
    step_s: float
    calm_share: float  # CPU time of wall time when nothing interferes


def calibrate(call: Call, device: Device, threads: int = 1) -> Pace:
    """Find the pace of a function from a few blocks; on a busy box the calmest of them tells what it does undisturbed."""
    goal_ns = _BLOCK_S[device.type] * 1e9
    loops, long, tried = _fill(call, device, goal_ns / 2)
    loops, before = math.ceil(loops * goal_ns / long[-1].wall_ns), loops
    blocks = long if loops == before else []
    while (
        len(blocks) < _CALM_BLOCKS
        and sum(block.wall_ns for block in blocks) < _CALM_SHARE * goal_ns
    ):
        blocks.append(time_block(call, loops, device))
    rest = [
        block for block in tried if block.wall_ns > goal_ns / 10
    ]  # of shorter ones the clocks themselves are a part
    return Pace(
        loops,
        min(block.wall_ns for block in blocks) / loops / 1e9,
        _calm_share(blocks + rest, threads),
    )


def _fill(call: Call, device: Device, least_ns: float) -> tuple[int, list[Timed], list[Timed]]:
    """Return how many calls take so long, two blocks that did, and those before.

    One alone tells nothing: a second call of a function may still compile it, or record a graph.
    """
    loops = 1
    tried: list[Timed] = []
    while True:
        long: list[Timed] = []
        while len(long) < 2 and (timed := time_block(call, loops, device)).wall_ns >= least_ns:
            long.append(timed)
        if len(long) == 2:
            return loops, long, tried
        tried.append(timed)
        loops *= 4 if timed.wall_ns < least_ns / 4 else 2


def _calm_share(blocks: list[Timed], threads: int) -> float:
    """Return what an arm uses of its wall time undisturbed; one thread that never waits is on its core all the time."""
    if threads == 1 and any(block.waits == 0 for block in blocks):
        return 1.0
    return min(max(block.share(threads) for block in blocks), threads)


def cores_of_others() -> float:
    """Return how many cores the other threads of this process use."""
    wall_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns() - time.thread_time_ns()
    time.sleep(_NAP_S)
    return (time.process_time_ns() - time.thread_time_ns() - cpu_ns) / (
        time.perf_counter_ns() - wall_ns
    )


def wait_for_pools(cores: Callable[[], float] = cores_of_others) -> None:
    """Wait until the other threads of this process rest: a pool spins for a while after an operator that was shared."""
    until = time.monotonic() + _PATIENCE_S
    while cores() > _SPINNING_CORES and time.monotonic() < until:
        pass


def known_delay(loops: int) -> float:
    """Return the share of a block of `loops` calls by which a delayed one is longer: whole calls where there are many."""
    return _extra_calls(loops) / loops or _DELAY


def time_block(call: Call, loops: int, device: Device, delay: Clock | None = None) -> Timed:
    """Time `loops` calls; with the known delay on top if it is asked for: more calls where there are many, else a delay.

    `delay` is the clock that the delay goes by. For an arm that is on its core all the time it is that of its thread: on a
    busy box a share of the wall time would be a greater one of what the arm itself takes.
    """
    extra = _extra_calls(loops) if delay else 0
    device.wait()
    device.begin()
    began, waits = delay() if delay else 0, count_waits()
    cpu_ns, thread_ns = time.process_time_ns(), time.thread_time_ns()
    wall_ns = time.perf_counter_ns()
    for _ in range(loops + extra):
        call()
    submitted_ns = time.perf_counter_ns() - wall_ns
    if delay and not extra:
        device.wait()  # else it would pass beside what is still done on other streams
        device.delay((delay() - began) * _DELAY, delay)
    device.end()
    device.wait()
    wall_ns = time.perf_counter_ns() - wall_ns
    thread_ns = time.thread_time_ns() - thread_ns
    cpu_ns = time.process_time_ns() - cpu_ns
    waited = None if waits is None else (count_waits() or 0) - waits
    stream_ns = device.stream_ns()
    return Timed(
        wall_ns, cpu_ns, thread_ns, waited, stream_ns, None if stream_ns is None else submitted_ns
    )


def count_waits() -> int | None:
    """Return how often the calling thread gave its core away by itself: for a lock, a disk, a sleep."""
    # None that has got as far as this has never waited: where the count is 0, nobody counts.
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw or None


def _extra_calls(loops: int) -> int:
    return round(loops * _DELAY) if loops >= _MANY else 0
