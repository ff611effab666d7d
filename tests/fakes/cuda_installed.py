"""Puts the model of `tests/fakes/cuda.py` in the place of torch.cuda and of the clocks of the host."""

import time
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.fakes.cuda_streams import Event, Stream

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

_OF_TORCH = (
    "is_available", "device_count", "is_initialized", "current_device", "set_device", "current_stream", "synchronize",
    "get_device_properties", "is_current_stream_capturing", "memory_allocated", "memory_reserved", "max_memory_allocated",
    "max_memory_reserved", "memory_stats", "memory_stats_as_nested_dict", "reset_peak_memory_stats", "_sleep", "init",
    "set_stream", "caching_allocator_alloc", "caching_allocator_delete", "get_arch_list", "empty_cache",
)  # fmt: skip


def install(patch: pytest.MonkeyPatch, cuda: "FakeCuda") -> "FakeCuda":
    """Patch what is asked of CUDA, and every clock, until the test is over."""

    class Selected:
        def __init__(self, device: Any) -> None:
            self.device = device

        def __enter__(self) -> None:
            self.before = cuda.current_device()
            cuda.set_device(self.device)

        def __exit__(self, *problem: object) -> None:
            cuda.selected = self.before

    class On:
        def __init__(self, stream: Stream) -> None:
            self.gpu, self.stream = cuda.gpus[stream.device_index], stream

        def __enter__(self) -> None:
            self.before = self.gpu.current
            torch.cuda.set_stream(self.stream)  # type: ignore[arg-type]

        def __exit__(self, *problem: object) -> None:
            torch.cuda.set_stream(self.before)  # type: ignore[arg-type]

    for name in _OF_TORCH:
        patch.setattr(torch.cuda, name, getattr(cuda, name))
    patch.setattr(torch.cuda, "Event", lambda enable_timing=False: Event(cuda, enable_timing))
    patch.setattr(torch.cuda, "Stream", lambda device=None: cuda.side_stream(cuda.index_of(device)))
    patch.setattr(torch.cuda, "device", Selected)
    patch.setattr(torch.cuda, "stream", On)
    _replace_clocks(patch, cuda)
    return cuda


def _replace_clocks(patch: pytest.MonkeyPatch, cuda: "FakeCuda") -> None:
    for name in ("perf_counter_ns", "monotonic_ns"):
        patch.setattr(time, name, cuda.look)
    for name in ("process_time_ns", "thread_time_ns"):
        patch.setattr(time, name, cuda.look_at_cpu_time)
    patch.setattr(time, "monotonic", lambda: cuda.look() / 1e9)
    patch.setattr(time, "sleep", cuda.sleep)
