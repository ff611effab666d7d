"""Kernels of a known length for tests on a GPU, and what they do to a stream."""

import functools
import time
from collections.abc import Callable

import torch

_CYCLES = 50_000_000  # some 30 ms
_WARM_S = 1.0


def warm_up(seconds: float = _WARM_S) -> None:
    """Bring the clocks of the current GPU up: they sleep while nothing is computed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        torch.cuda._sleep(_CYCLES)
        torch.cuda.synchronize()


@functools.cache
def cycles_per_us() -> float:
    """Return the pace of the delay kernel of the current GPU, by the clock of the host."""
    warm_up()
    torch.cuda.synchronize()
    began = time.perf_counter_ns()
    torch.cuda._sleep(_CYCLES)
    torch.cuda.synchronize()
    return _CYCLES / ((time.perf_counter_ns() - began) / 1000)


def busy(us: float) -> None:
    """Keep the current stream busy for so long."""
    torch.cuda._sleep(round(us * cycles_per_us()))


def each(us: float) -> Callable[[], None]:
    """Return a function that keeps the current stream busy for so long, with one launch."""
    cycles = round(us * cycles_per_us())
    return lambda: torch.cuda._sleep(cycles)
