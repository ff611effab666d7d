"""What little things cost on a GPU: to tell it to run a kernel, and how fine the clock of its events ticks."""

import time
from itertools import pairwise
from statistics import median

import torch

from tuilab.lab.device.cuda import Cuda

_LAUNCHES = 500  # fewer than wait in a queue: beyond that the host would wait for the GPU
_TURNS = 5
_SPANS = 200
_LEAST_NS = 50_000.0  # of a span: longer than it takes to tell of its end


def launch_s(gpu: Cuda) -> float:
    """Return how long the host takes to tell it one small operator, until the call returns."""
    number = torch.zeros(10, device=gpu.torch_device)
    took = []
    with gpu.selected(), torch.no_grad():
        for _ in range(_TURNS):
            gpu.wait()
            began = time.perf_counter_ns()
            for _ in range(_LAUNCHES):
                number.add_(1)
            took.append((time.perf_counter_ns() - began) / _LAUNCHES / 1e9)
            gpu.wait()
    return median(took[1:])  # the first has loaded the kernel


def event_tick_s(gpu: Cuda) -> float | None:
    """Return the least by which two spans between events differ; None where none do.

    Each is longer than the one before, by a little more each time: else a fine clock would tell by how much that was.
    """
    gpu.make_ready()
    spans = sorted({_span_ns(gpu, _LEAST_NS + turn * turn) for turn in range(_SPANS)})
    return min((b - a for a, b in pairwise(spans)), default=0) / 1e9 or None


def _span_ns(gpu: Cuda, nanoseconds: float) -> int:
    gpu.begin()
    gpu.delay(nanoseconds, time.perf_counter_ns)
    gpu.end()
    gpu.wait()
    return gpu.stream_ns()
