"""How fast a GPU is at what training does; `tuilab doctor --gpu` measures it.

That is what it gets done in a second (products of matrices, copies within its memory, copies from the host and back), and the
cost of small things: how long a kernel takes to launch, and how fine the clock of its events is.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from statistics import median

import torch

from tuilab.lab.device.cuda import Cuda
from tuilab.lab.device.precision import precision

# How a product of matrices is computed: the type of the factors, and how float32 is multiplied.
PRODUCTS = {
    "ieee": (torch.float32, "ieee"),
    "tf32": (torch.float32, "tf32"),
    "bf16": (torch.bfloat16, ""),
    "fp16": (torch.float16, ""),
}

_SIDE = 8192  # of a matrix: as large as it takes to keep the largest GPUs busy
_WITHIN_BYTES = 512 << 20  # more than any cache of a GPU holds
_ACROSS_BYTES = 64 << 20  # more than any cache of a core holds
_LONG_ENOUGH_S = 0.25
_MOST_CALLS = 2_000


_LAUNCHES = 500  # fewer than wait in a queue: beyond that the host would wait for the GPU
_TURNS = 5
_SPANS = 200
_LEAST_NS = 50_000.0  # of a span: longer than it takes to tell of its end


def product_flops(gpu: Cuda, kind: str) -> float:
    """Return the floating point operations a second of a large product."""
    dtype, how = PRODUCTS[kind]
    with _only(gpu), precision(how) if how else nullcontext():
        a, b = (
            torch.empty(_SIDE, _SIDE, dtype=dtype, device=gpu.torch_device).normal_()
            for _ in range(2)
        )
        product = torch.empty_like(
            a
        )  # of random numbers: a product of zeros takes less power, and lets the clocks go higher
        return 2 * _SIDE**3 * _calls_a_second(gpu, lambda: torch.mm(a, b, out=product))


def memory_rate(gpu: Cuda) -> float:
    """Return the bytes a second that it reads and writes in its own memory, when it copies what fits no cache."""
    with _only(gpu):
        source = torch.empty(_WITHIN_BYTES, dtype=torch.uint8, device=gpu.torch_device)
        target = torch.empty_like(source)
        return 2 * _WITHIN_BYTES * _calls_a_second(gpu, lambda: target.copy_(source))


def copy_rates(gpu: Cuda, *, is_pinned: bool) -> tuple[float, float]:
    """Return the bytes a second from the host to it, and back."""
    with _only(gpu):
        host_tensor = torch.empty(_ACROSS_BYTES, dtype=torch.uint8, pin_memory=is_pinned).fill_(
            1
        )  # untouched it is none
        its = torch.empty(_ACROSS_BYTES, dtype=torch.uint8, device=gpu.torch_device)
        to_gpu = _calls_a_second(gpu, lambda: its.copy_(host_tensor, non_blocking=is_pinned))
        back = _calls_a_second(gpu, lambda: host_tensor.copy_(its, non_blocking=is_pinned))
        return _ACROSS_BYTES * to_gpu, _ACROSS_BYTES * back


@contextmanager
def _only(gpu: Cuda) -> Iterator[None]:
    """Measure on a GPU, of which the measurement before keeps no memory."""
    gpu.empty_cache()
    with gpu.selected(), torch.no_grad():
        yield


def _calls_a_second(gpu: Cuda, call: Callable[[], object]) -> float:
    """Time so many calls that they take long enough, twice: the first may load what they need, and wake the clocks."""
    once_s = min(_seconds(gpu, call, 1) for _ in range(3))
    calls = min(max(round(_LONG_ENOUGH_S / once_s), 1), _MOST_CALLS)
    return calls / min(_seconds(gpu, call, calls) for _ in range(2))


def _seconds(gpu: Cuda, call: Callable[[], object], calls: int) -> float:
    gpu.wait()
    began = time.perf_counter_ns()
    for _ in range(calls):
        call()
    gpu.wait()
    return (time.perf_counter_ns() - began) / 1e9


def launch_s(gpu: Cuda) -> float:
    """Return how long the host takes to tell it one small operator, until the call returns."""
    number = torch.zeros(10, device=gpu.torch_device)
    times_s = []
    with gpu.selected(), torch.no_grad():
        for _ in range(_TURNS):
            gpu.wait()
            began = time.perf_counter_ns()
            for _ in range(_LAUNCHES):
                number.add_(1)
            times_s.append((time.perf_counter_ns() - began) / _LAUNCHES / 1e9)
            gpu.wait()
    return median(times_s[1:])  # the first has loaded the kernel


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
