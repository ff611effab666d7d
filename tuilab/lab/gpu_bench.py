"""Measure the speed of a GPU for `tuilab doctor --gpu`.

That is the rate of matrix products, of copies in its memory, and of copies from and to the host,
the time to launch a kernel, and the resolution of events.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import pairwise
from statistics import median

import torch

from tuilab.lab.device.cuda import Cuda
from tuilab.lab.device.precision import precision

# For each kind of matrix product: the dtype of the factors, and the precision of float32.
PRODUCTS = {
    "ieee": (torch.float32, "ieee"),
    "tf32": (torch.float32, "tf32"),
    "bf16": (torch.bfloat16, ""),
    "fp16": (torch.float16, ""),
}

_SIDE = 8192  # rows and columns of a matrix, which keep the largest GPUs busy
_WITHIN_BYTES = 512 << 20  # more than any cache of a GPU holds
_ACROSS_BYTES = 64 << 20  # more than any cache of a core holds
_LONG_ENOUGH_S = 0.25  # of calls, for one measurement
_MOST_CALLS = 2_000  # for one measurement
_LAUNCHES = 500  # fewer than the queue of a GPU holds: beyond that, the host would wait
_TURNS = 5  # measurements of launches, of which the first is dropped
_SPANS = 200  # between events, to find their resolution
_LEAST_NS = 50_000.0  # of a span: longer than recording the event at its end


def product_flops(gpu: Cuda, kind: str) -> float:
    """Return the floating point operations a second of a large product."""
    dtype, precision_name = PRODUCTS[kind]
    chosen_precision: AbstractContextManager[None] = nullcontext()
    if precision_name:
        chosen_precision = precision(precision_name)
    with _only(gpu), chosen_precision:
        # Random numbers: a product of zeros takes less power, so that the clocks rise.
        a = torch.empty(_SIDE, _SIDE, dtype=dtype, device=gpu.torch_device).normal_()
        b = torch.empty(_SIDE, _SIDE, dtype=dtype, device=gpu.torch_device).normal_()
        product = torch.empty_like(a)
        return 2 * _SIDE**3 * _calls_a_second(gpu, lambda: torch.mm(a, b, out=product))


def memory_rate(gpu: Cuda) -> float:
    """Return the bytes a second that a GPU reads and writes in its memory, in a large copy."""
    with _only(gpu):
        source = torch.empty(_WITHIN_BYTES, dtype=torch.uint8, device=gpu.torch_device)
        target = torch.empty_like(source)
        return 2 * _WITHIN_BYTES * _calls_a_second(gpu, lambda: target.copy_(source))


def copy_rates(gpu: Cuda, *, is_pinned: bool) -> tuple[float, float]:
    """Return the bytes a second from the host to the GPU, and back."""
    with _only(gpu):
        host_tensor = torch.empty(_ACROSS_BYTES, dtype=torch.uint8, pin_memory=is_pinned)
        host_tensor.fill_(1)  # so that it has physical memory
        gpu_tensor = torch.empty(_ACROSS_BYTES, dtype=torch.uint8, device=gpu.torch_device)
        to_gpu = _calls_a_second(gpu, lambda: gpu_tensor.copy_(host_tensor, non_blocking=is_pinned))
        to_host = _calls_a_second(
            gpu, lambda: host_tensor.copy_(gpu_tensor, non_blocking=is_pinned)
        )
        return _ACROSS_BYTES * to_gpu, _ACROSS_BYTES * to_host


@contextmanager
def _only(gpu: Cuda) -> Iterator[None]:
    """Measure on a GPU without memory of the previous measurement."""
    gpu.empty_cache()
    with gpu.selected(), torch.no_grad():
        yield


def _calls_a_second(gpu: Cuda, call: Callable[[], object]) -> float:
    """Return the rate of calls: of the better of two runs, because the first may load kernels."""
    once_s = min(_seconds(gpu, call, 1) for _ in range(3))
    calls = max(round(_LONG_ENOUGH_S / once_s), 1)
    calls = min(calls, _MOST_CALLS)
    best_s = min(_seconds(gpu, call, calls) for _ in range(2))
    return calls / best_s


def _seconds(gpu: Cuda, call: Callable[[], object], calls: int) -> float:
    """Return how long some calls take, from an idle GPU until it has done all of them."""
    gpu.wait()
    began = time.perf_counter_ns()
    for _ in range(calls):
        call()
    gpu.wait()
    return (time.perf_counter_ns() - began) / 1e9


def launch_s(gpu: Cuda) -> float:
    """Return how long the host takes to launch one small operator."""
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
    return median(times_s[1:])  # the first includes the loading of the kernel


def event_tick_s(gpu: Cuda) -> float | None:
    """Return the smallest difference between times of events; None if all are equal.

    Each span is longer than the one before by a growing amount. With a constant amount, a fine
    clock would return that amount.
    """
    gpu.make_ready()
    spans_ns = {_span_ns(gpu, _LEAST_NS + turn * turn) for turn in range(_SPANS)}
    differences_ns = [longer - shorter for shorter, longer in pairwise(sorted(spans_ns))]
    if not differences_ns:
        return None
    return min(differences_ns) / 1e9


def _span_ns(gpu: Cuda, nanoseconds: float) -> int:
    """Return the time between two events on the GPU with a delay of so many nanoseconds between."""
    gpu.begin()
    gpu.delay(nanoseconds, time.perf_counter_ns)
    gpu.end()
    gpu.wait()
    return gpu.stream_ns()
