"""What torch.cuda calls in a build with CUDA, for the GPU of `tests/fakes/cuda_values.py`."""

from types import SimpleNamespace
from typing import Any

import torch

TOTAL_BYTES = 80 << 30
SEGMENT_BYTES = 2 << 20  # that the allocator reserves at a time
PROPERTIES = SimpleNamespace(
    name="a GPU with values",
    major=9,
    minor=0,
    uuid="GPU-00000000-0000-0000-0000-000000000000",
    total_memory=TOTAL_BYTES,
    multi_processor_count=132,
    L2_cache_size=50 << 20,
)
OTHER_NUMBERS = 12_345  # with one seed, a GPU draws other numbers than the host
_model = torch.ops.cuda_values
_sync_mode = 0
has_time = False  # whether `timed_gpu.py` has given the GPU a time


class Stream:
    """A stream. All streams are one queue, which is empty unless the GPU has a time."""

    def __init__(self, device: Any = None, priority: int = 0, **more: Any) -> None:
        self.device = torch.device("cuda", 0)
        self.device_index = 0
        self.cuda_stream = 0

    def wait_stream(self, stream: "Stream") -> None:
        pass

    def wait_event(self, event: "Event") -> None:
        pass

    def synchronize(self) -> None:
        synchronize()

    def query(self) -> bool:
        return bool(_model.queue_end() <= _model.now())

    def record_event(self, event: "Event | None" = None) -> "Event":
        event = event or Event()
        event.record(self)
        return event


class Event:
    """A mark in a stream: the time of the host at which the GPU reaches it."""

    def __init__(self, enable_timing: bool = False, **more: Any) -> None:
        self.recorded_ns = 0

    def record(self, stream: Stream | None = None) -> None:
        self.recorded_ns = _model.queue_end()

    def wait(self, stream: Stream | None = None) -> None:
        pass

    def query(self) -> bool:
        return bool(self.recorded_ns <= _model.now())

    def synchronize(self) -> None:
        _model.wait_until(self.recorded_ns)

    def elapsed_time(self, end: "Event") -> float:
        return (end.recorded_ns - self.recorded_ns) / 1e6


class CUDAGraph:
    """The operators of a capture, to be computed again from the same memory."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._number = -1

    def capture_begin(self, **more: Any) -> None:
        _model.capture_begin()

    def capture_end(self) -> None:
        self._number = _model.capture_end()

    def replay(self) -> None:
        _model.replay(self._number)

    def reset(self) -> None:
        pass

    def pool(self) -> tuple[int, int]:
        return (0, 0)


class Generator:
    """The random numbers of the GPU, apart from those of the host."""

    def __init__(self) -> None:
        self._seed = 0

    def manual_seed(self, seed: int) -> None:
        self._seed = seed
        _model.seed((seed + OTHER_NUMBERS) % (1 << 63))

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> torch.Tensor:
        state: torch.Tensor = _model.random_state()
        return state

    def set_state(self, state: torch.Tensor) -> None:
        _model.set_random_state(state)


_default_stream = Stream()
_current_stream = [_default_stream]


def memory_stats(device: int) -> dict[str, Any]:
    """Return what the allocator counts. It reserves whole segments, and gives none back."""
    asked, asked_peak, allocated, allocated_peak, reserved = _model.memory()
    return {
        "requested_bytes": {"all": {"current": asked, "peak": asked_peak}},
        "allocated_bytes": {"all": {"current": allocated, "peak": allocated_peak}},
        "reserved_bytes": {"all": {"current": reserved, "peak": reserved}},
        "segment": {"all": {"allocated": reserved // SEGMENT_BYTES}},
        "num_alloc_retries": _model.allocator_retries(),
    }


def set_capacity(total_bytes: int) -> None:
    """Give the GPU less memory."""
    global TOTAL_BYTES
    TOTAL_BYTES = total_bytes
    PROPERTIES.total_memory = total_bytes


def set_sync_mode(mode: int) -> None:
    global _sync_mode
    _sync_mode = mode
    _model.set_sync_mode(mode)


def synchronize() -> None:
    """Wait until the GPU has finished.

    Without a time it always has. The calls of the model are operators, which a lesson may count.
    """
    if not has_time:
        return
    _model.wait_until(_model.queue_end())


def set_stream(stream: Stream) -> None:
    _current_stream[0] = stream


def install() -> None:
    """Give torch the functions of a build with CUDA."""
    functions = {
        "_cuda_getDeviceCount": lambda: 1,
        "_cuda_getDevice": lambda: 0,
        "_cuda_setDevice": lambda index: None,
        "_cuda_isInBadFork": lambda: False,
        "_cuda_getArchFlags": lambda: "sm_90",
        "_cuda_synchronize": synchronize,
        "_cuda_getCurrentRawStream": lambda index: 0,
        "_cuda_sleep": lambda cycles: None,
        "_cuda_set_sync_debug_mode": set_sync_mode,
        "_cuda_get_sync_debug_mode": lambda: _sync_mode,
        "_cuda_memoryStats": memory_stats,
        "_cuda_resetPeakMemoryStats": lambda device: _model.reset_peak(),
        "_cuda_emptyCache": lambda: None,
        "_cuda_cudaCachingAllocator_raw_alloc": lambda size, stream: 0,
        "_cuda_cudaCachingAllocator_raw_delete": lambda address: None,
        "_host_emptyCache": lambda: None,
    }
    for name, function in functions.items():
        setattr(torch._C, name, function)
    # torch has bound these while it was loaded, for a build without CUDA.
    bound: dict[Any, dict[str, Any]] = {
        torch.cuda: {
            "_initialized": True,
            "_exchange_device": lambda index: 0,
            "_maybe_exchange_device": lambda index: 0,
            "_get_device_properties": lambda index: PROPERTIES,
            "default_generators": (Generator(),),
            "Stream": Stream,
            "Event": Event,
            "current_stream": lambda device=None: _current_stream[0],
            "default_stream": lambda device=None: _default_stream,
            "set_stream": set_stream,
            "is_current_stream_capturing": lambda: _model.is_capturing(),
            "CUDAGraph": CUDAGraph,
            "graph_pool_handle": lambda: (0, 0),
            "mem_get_info": lambda device=None: (TOTAL_BYTES - _model.memory()[2], TOTAL_BYTES),
        },
        torch.cuda.streams: {"Stream": Stream, "Event": Event},
        torch.cuda.nvtx: {
            "range_push": lambda text: 0,
            "range_pop": lambda: 0,
        },
    }
    for module, names in bound.items():
        for name, value in names.items():
            setattr(module, name, value)
    torch.cuda.manual_seed_all(0)
