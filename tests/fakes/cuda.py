"""A model of torch.cuda in virtual time, which stands beneath tuilab/lab/device/: its lines run as on a GPU, in no time.

A kernel is told now and done later, in the order of its stream. The clocks of the host are replaced as well, so that every
number is exact: telling, recording, making an event, reading a clock cost what is written below.

By default the tests run every line of device/, timing.py and rounds.py on it. What they cannot show: whether the driver of
a real GPU does what is written here. Not modelled are clocks that ramp by themselves, kernels of two streams that share a GPU,
what a graph records, copies, and a host that waits without using its core.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tuilab.lab import device as devices

LAUNCH, RECORD, CREATE, WAIT, QUERY, LOOK, STATS = 4_000, 1_500, 800, 5_000, 500, 40, 30_000  # nanoseconds of the host
QUEUE = 1024  # that a stream holds; the host waits for a place in it
CYCLES_PER_NS = 1.755
SEGMENT = 2 << 20  # bytes that the allocator reserves at a time


class Stream:
    """What is told to a GPU in one order: when each of it is done."""

    def __init__(self, cuda: "FakeCuda", device: int) -> None:
        self.cuda, self.device_index = cuda, device
        self.free_at = 0.0
        self._queue: deque[float] = deque()
        cuda.gpus[device].streams.append(self)

    def add(self, nanoseconds: float) -> float:
        """Do something after all else, as soon as it has a place in the queue; return when it is done."""
        while self._queue and self._queue[0] <= self.cuda.now:
            self._queue.popleft()
        if len(self._queue) >= QUEUE:
            self.cuda.now = self._queue.popleft()
        self.free_at = max(self.free_at, self.cuda.now) + nanoseconds
        self._queue.append(self.free_at)
        return self.free_at

    def query(self) -> bool:
        self.cuda.touch("Stream.query")
        self.cuda.now += QUERY
        return self.free_at <= self.cuda.now

    def synchronize(self) -> None:
        self.cuda.touch("Stream.synchronize")
        self.cuda.now = max(self.cuda.now, self.free_at) + WAIT

    def wait_event(self, event: "Event") -> None:
        self.free_at = max(self.free_at, event.at)

    def wait_stream(self, other: "Stream") -> None:
        self.free_at = max(self.free_at, other.free_at)

    def record_event(self, event: "Event | None" = None) -> "Event":
        event = event or Event(self.cuda)
        event.record(self)
        return event


class Event:
    """A mark in a stream: made when it is first recorded, of the GPU that it was first recorded on."""

    def __init__(self, cuda: "FakeCuda", enable_timing: bool = False) -> None:
        self.cuda, self.enable_timing = cuda, enable_timing
        self.at = -math.inf
        self.device_index: int | None = None

    def record(self, stream: Stream | None = None) -> None:
        self.cuda.touch("Event.record")
        stream = stream or self.cuda.current_stream()
        if self.device_index is None:
            self.device_index = stream.device_index
            self.cuda.now += CREATE
        if self.device_index != stream.device_index:
            raise RuntimeError(
                f"Event device index {self.device_index} does not match recording stream's {stream.device_index}."
            )
        self.cuda.now += RECORD
        self.at = stream.add(0)

    def query(self) -> bool:
        self.cuda.touch("Event.query")
        self.cuda.now += QUERY
        return self.at <= self.cuda.now

    def synchronize(self) -> None:
        self.cuda.touch("Event.synchronize")
        self.cuda.now = max(self.cuda.now, self.at) + WAIT

    def wait(self, stream: Stream | None = None) -> None:
        (stream or self.cuda.current_stream()).wait_event(self)

    def elapsed_time(self, end: "Event") -> float:
        assert self.enable_timing and end.enable_timing
        if self.device_index is None or end.device_index is None or self.device_index != end.device_index:
            raise RuntimeError("CUDA error: invalid resource handle")
        if max(self.at, end.at) > self.cuda.now:
            raise RuntimeError("CUDA error: device not ready")
        return (self._tick(end.at) - self._tick(self.at)) / 1e6

    def _tick(self, at: float) -> float:
        return at // self.cuda.tick * self.cuda.tick if self.cuda.tick else at


class Gpu:
    """One GPU: its streams, and what the allocator holds on it."""

    def __init__(self, number: int) -> None:
        self.uuid = f"GPU-{number:08d}-0000-0000-0000-000000000000"
        self.streams: list[Stream] = []
        self.current: Stream
        self.allocated = self.allocated_peak = self.reserved = self.reserved_peak = self.asked = self.asked_peak = 0
        self.room = 80 << 30  # bytes for those who allocate
        self.is_touched = False  # somebody in this process has a context there
        self.refuses = ""  # what the driver says to the first that is told to it; it is counted all the same

    def allocate(self, size: int, asked: int | None = None) -> None:
        """Give out so many bytes, or take them back; `asked` is for how many the program has asked."""
        self.allocated += size
        self.asked += size if asked is None else asked
        self.asked_peak = max(self.asked_peak, self.asked)
        self.reserved = max(self.reserved, math.ceil(self.allocated / SEGMENT) * SEGMENT)
        self.allocated_peak = max(self.allocated_peak, self.allocated)
        self.reserved_peak = max(self.reserved_peak, self.reserved)


class FakeCuda:
    """What torch.cuda is in a test; `initialised_by` is the first call that made a context."""

    LAUNCH, RECORD, CREATE, WAIT, QUERY, LOOK = LAUNCH, RECORD, CREATE, WAIT, QUERY, LOOK

    def __init__(self, count: int, initialised: bool) -> None:
        self.now = 1e9  # of the host, in nanoseconds
        self.slept = 0.0  # of which no CPU time was used
        self.tick = 0  # of the clock of events
        self.is_free = False  # the delay kernel takes no time
        self.is_recording_graph = False
        self.counts_asked = True  # the allocator is torch's own
        self.broken = ""  # the error that every call raises
        self.why_not = "No CUDA GPUs are available"  # what is said where none is counted
        self.initialised_by = "the test" if initialised else ""
        self.compiled_for = ["sm_80", "sm_90", "compute_90"]  # this build of torch
        self.selected = 0
        self.gpus = [Gpu(number) for number in range(count)]
        for number, gpu in enumerate(self.gpus):
            gpu.current = Stream(self, number)

    def touch(self, call: str) -> None:
        """Note that a call needs a context, which the first of them makes; none works after a sticky error."""
        self.initialised_by = self.initialised_by or call
        if self.broken:
            raise torch.AcceleratorError(self.broken)

    def work(self, nanoseconds: float, stream: Stream | None = None, host: float = LAUNCH) -> None:
        """Tell a kernel to the current stream, or to another one."""
        self.touch("a kernel")
        self.now += host
        self.tell()
        (stream or self.current_stream()).add(nanoseconds)

    def tell(self) -> None:
        """Give something to the current GPU, which may refuse it: other GPUs go on as before."""
        gpu = self.gpus[self.selected]
        gpu.is_touched = True
        if gpu.refuses:
            raise torch.AcceleratorError(gpu.refuses)

    @contextmanager
    def on(self, index: int) -> Iterator[None]:
        """Let a GPU be the current one meanwhile, as an operator does for its tensors; costs nothing."""
        before, self.selected = self.selected, index
        try:
            yield
        finally:
            self.selected = before

    def side_stream(self, device: int = 0) -> Stream:
        """Return a stream beside the current one of a GPU, as `torch.cuda.Stream()` does."""
        return Stream(self, device)

    # ---- what torch.cuda has

    def init(self) -> None:
        if not self.gpus:
            raise RuntimeError(self.why_not)
        self.touch("init")

    def caching_allocator_alloc(self, size: int, device: Any = None, stream: Any = None) -> int:
        self.touch("caching_allocator_alloc")
        self.tell()
        self.gpus[self.index_of(device)].allocate(size)
        return size  # the model's address of it, by which it is known how much to give back

    def caching_allocator_delete(self, address: int) -> None:
        self.gpus[self.selected].allocate(-address)

    def is_available(self) -> bool:
        return bool(self.gpus)

    def device_count(self) -> int:
        return len(self.gpus)

    def is_initialized(self) -> bool:
        return bool(self.initialised_by)

    def current_device(self) -> int:
        self.touch("current_device")
        return self.selected

    def set_device(self, device: Any) -> None:
        self.touch("set_device")
        self.selected = self.index_of(device)

    def current_stream(self, device: Any = None) -> Stream:
        self.touch("current_stream")
        return self.gpus[self.index_of(device)].current

    def synchronize(self, device: Any = None) -> None:
        self.touch("synchronize")
        done = [stream.free_at for stream in self.gpus[self.index_of(device)].streams]
        self.now = max(self.now, *done) + WAIT

    def get_device_properties(self, device: Any = None) -> Any:
        self.touch("get_device_properties")
        return SimpleNamespace(
            name="a fake GPU", major=9, minor=0, uuid=self.gpus[self.index_of(device)].uuid, total_memory=80 << 30,
            multi_processor_count=132, L2_cache_size=50 << 20,
        )  # fmt: skip

    def get_arch_list(self) -> list[str]:
        return list(self.compiled_for)

    def empty_cache(self) -> None:
        self.touch("empty_cache")
        gpu = self.gpus[self.selected]
        gpu.reserved = math.ceil(gpu.allocated / SEGMENT) * SEGMENT

    def is_current_stream_capturing(self) -> bool:
        return self.is_recording_graph

    def memory_allocated(self, device: Any = None) -> int:
        return self.gpus[self.index_of(device)].allocated

    def memory_reserved(self, device: Any = None) -> int:
        return self.gpus[self.index_of(device)].reserved

    def max_memory_allocated(self, device: Any = None) -> int:
        return self.gpus[self.index_of(device)].allocated_peak

    def max_memory_reserved(self, device: Any = None) -> int:
        return self.gpus[self.index_of(device)].reserved_peak

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        return {"requested_bytes.all.peak": self.gpus[self.index_of(device)].asked_peak} if self.counts_asked else {}

    def memory_stats_as_nested_dict(self, device: Any = None) -> dict[str, Any]:
        """Answer without a context, which it does not make; an allocator that asks the driver fails after a sticky error."""
        if not self.initialised_by:
            return {}
        if self.broken and not self.counts_asked:
            raise torch.AcceleratorError(self.broken)
        self.now += STATS
        gpu = self.gpus[self.index_of(device)]
        held = {"allocated_bytes": gpu.allocated, "reserved_bytes": gpu.reserved}
        return {name: {"all": {"current": value}} for name, value in held.items()}

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        self.touch("reset_peak_memory_stats")
        gpu = self.gpus[self.index_of(device)]
        gpu.allocated_peak, gpu.reserved_peak, gpu.asked_peak = gpu.allocated, gpu.reserved, gpu.asked

    def _sleep(self, cycles: int) -> None:
        self.work(0 if self.is_free else cycles / CYCLES_PER_NS)

    def index_of(self, device: Any) -> int:
        index = getattr(device, "index", device)
        return self.selected if index is None else index

    # ---- the clocks of the host

    def look(self) -> int:
        self.now += LOOK
        return int(self.now)

    def look_at_cpu_time(self) -> int:
        self.now += LOOK
        return int(self.now - self.slept)

    def sleep(self, seconds: float) -> None:
        self.now += seconds * 1e9
        self.slept += seconds * 1e9


_OF_TORCH = (
    "is_available", "device_count", "is_initialized", "current_device", "set_device", "current_stream", "synchronize",
    "get_device_properties", "is_current_stream_capturing", "memory_allocated", "memory_reserved", "max_memory_allocated",
    "max_memory_reserved", "memory_stats", "memory_stats_as_nested_dict", "reset_peak_memory_stats", "_sleep", "init",
    "caching_allocator_alloc", "caching_allocator_delete", "get_arch_list", "empty_cache",
)  # fmt: skip


def _install(patch: pytest.MonkeyPatch, cuda: FakeCuda) -> FakeCuda:
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
            self.before, self.gpu.current = self.gpu.current, self.stream

        def __exit__(self, *problem: object) -> None:
            self.gpu.current = self.before

    for name in _OF_TORCH:
        patch.setattr(torch.cuda, name, getattr(cuda, name))
    patch.setattr(torch.cuda, "Event", lambda enable_timing=False: Event(cuda, enable_timing))
    patch.setattr(torch.cuda, "Stream", lambda device=None: cuda.side_stream(cuda.index_of(device)))
    patch.setattr(torch.cuda, "device", Selected)
    patch.setattr(torch.cuda, "stream", On)
    for name in ("perf_counter_ns", "monotonic_ns"):
        patch.setattr(time, name, cuda.look)
    for name in ("process_time_ns", "thread_time_ns"):
        patch.setattr(time, name, cuda.look_at_cpu_time)
    patch.setattr(time, "monotonic", lambda: cuda.look() / 1e9)
    patch.setattr(time, "sleep", cuda.sleep)
    return cuda


@pytest.fixture
def make_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeCuda]]:
    """Put a box with so many GPUs in the place of torch.cuda and of the clocks; no GPU of another test is remembered."""
    devices.gpu.cache_clear()
    yield lambda count=2, initialised=True: _install(monkeypatch, FakeCuda(count, initialised))
    devices.gpu.cache_clear()


@pytest.fixture
def cuda(make_cuda: Callable[..., FakeCuda]) -> FakeCuda:
    """Two GPUs, of which this process has used one before."""
    return make_cuda()


@pytest.fixture
def unused_cuda(make_cuda: Callable[..., FakeCuda]) -> FakeCuda:
    """Two GPUs, of which this process has used none."""
    return make_cuda(initialised=False)
