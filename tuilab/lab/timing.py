"""Times one block: calls of a function on the wall clock, on the CPU and on the GPU, which is waited for once, at the end."""

import math
import resource
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import torch

from tuilab.lab import device as devices

Call = Callable[[], object]
Clock = Callable[[], int]  # in nanoseconds

_DELAY = 0.05  # of the control with a known delay, about
_BLOCK_S = {"cpu": 0.010, "cuda": 0.050}
_LEAST_LOOPS = {"cpu": 1, "cuda": 20}  # on a GPU waiting on the host would not be seen: the delay must be calls
_CALM_BLOCKS = 3
_MANY = 20  # calls, of which one is about the known delay
_NAP_S = 0.005
_PATIENCE_S = 0.5  # OpenBLAS spins for some 0.1 s, libgomp for less; a thread of the scenario may work for ever
_SPINNING_CORES = 0.1
_MOST_SPANS = 1000  # steps of a block that are timed one by one on the GPU


class Timed(NamedTuple):
    """The times of a block in nanoseconds; `device_ns` is the median step times the number of steps."""

    wall_ns: int
    cpu_ns: int  # of all threads of this process
    thread_ns: int  # of the thread that made the calls
    waits: int | None  # times that this thread gave its core away by itself; None where the kernel does not count them
    device_ns: int | None

    def share(self, threads: int) -> float:
        """Return the CPU time of wall time: of an arm on one thread that of this thread, as a pool may still spin beside it."""
        return (self.thread_ns if threads == 1 else self.cpu_ns) / self.wall_ns


class Pace(NamedTuple):
    """What is known of a function before it is raced."""

    loops: int  # calls that fill a block
    step_s: float
    calm_share: float  # CPU time of wall time when nothing interferes


def calibrate(call: Call, device: torch.device, threads: int = 1) -> Pace:
    """Find the pace of a function from a few blocks; on a busy box the calmest of them tells what it does undisturbed."""
    goal_ns = _BLOCK_S[device.type] * 1e9
    loops = 1
    tried = []
    while (timed := time_block(call, loops, device)).wall_ns < goal_ns / 2:
        tried.append(timed)
        loops *= 4 if timed.wall_ns < goal_ns / 8 else 2
    loops = max(_LEAST_LOOPS[device.type], math.ceil(loops * goal_ns / timed.wall_ns))
    blocks = [time_block(call, loops, device) for _ in range(_CALM_BLOCKS)]
    long = [block for block in tried if block.wall_ns > goal_ns / 10]  # of shorter ones the clocks themselves are a part
    return Pace(loops, min(block.wall_ns for block in blocks) / loops / 1e9, _calm_share(blocks + long, threads))


def _calm_share(blocks: list[Timed], threads: int) -> float:
    """Return what an arm uses of its wall time undisturbed; one thread that never waits is on its core all the time."""
    if threads == 1 and any(block.waits == 0 for block in blocks):
        return 1.0
    return min(max(block.share(threads) for block in blocks), threads)


def cores_of_others() -> float:
    """Return how many cores the other threads of this process use."""
    wall_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns() - time.thread_time_ns()
    time.sleep(_NAP_S)
    return (time.process_time_ns() - time.thread_time_ns() - cpu_ns) / (time.perf_counter_ns() - wall_ns)


def wait_for_pools(cores: Callable[[], float] = cores_of_others) -> None:
    """Wait until the other threads of this process rest: a pool spins for a while after an operator that was shared."""
    until = time.monotonic() + _PATIENCE_S
    while cores() > _SPINNING_CORES and time.monotonic() < until:
        pass


def known_delay(loops: int) -> float:
    """Return the share of a block of `loops` calls by which a delayed one is longer: whole calls where there are many."""
    return _extra_calls(loops) / loops or _DELAY


def time_block(call: Call, loops: int, device: torch.device, delay: Clock | None = None) -> Timed:
    """Time `loops` calls; with the known delay on top if it is asked for: more calls where there are many, else spinning.

    `delay` is the clock that the spinning goes by. For an arm that is on its core all the time it is that of its thread: on a
    busy box a share of the wall time would be a greater one of what the arm itself takes.
    """
    extra = _extra_calls(loops) if delay else 0
    spans = _Spans(min(loops + extra, _MOST_SPANS)) if device.type == "cuda" else None
    devices.synchronize(device)
    began, waits = delay() if delay else 0, count_waits()
    cpu_ns, thread_ns = time.process_time_ns(), time.thread_time_ns()
    wall_ns = time.perf_counter_ns()
    if spans is None:
        for _ in range(loops + extra):
            call()
    else:
        spans.run(call, loops + extra)
    devices.synchronize(device)
    if delay and not extra:
        _spin(delay, (delay() - began) * _DELAY)
    wall_ns = time.perf_counter_ns() - wall_ns
    thread_ns = time.thread_time_ns() - thread_ns
    cpu_ns = time.process_time_ns() - cpu_ns
    waited = None if waits is None else (count_waits() or 0) - waits
    return Timed(wall_ns, cpu_ns, thread_ns, waited, None if spans is None else spans.elapsed_ns(loops + extra))


def count_waits() -> int | None:
    """Return how often the calling thread gave its core away by itself: for a lock, a disk, a sleep."""
    # None that has got as far as this has never waited: where the count is 0, nobody counts.
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw or None


def _extra_calls(loops: int) -> int:
    return round(loops * _DELAY) if loops >= _MANY else 0


def _spin(clock: Clock, nanoseconds: float) -> None:
    """Use up time on the core: sleeping would give it away."""
    until = clock() + nanoseconds
    while clock() < until:
        pass


class _Spans:
    """A pair of CUDA events around each step."""

    def __init__(self, count: int) -> None:
        self._pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]

    def run(self, call: Call, loops: int) -> None:
        for begin, end in self._pairs:
            begin.record()
            call()
            end.record()
        for _ in range(loops - len(self._pairs)):
            call()

    def elapsed_ns(self, loops: int) -> int:
        return int(median(begin.elapsed_time(end) for begin, end in self._pairs) * 1e6 * loops)
