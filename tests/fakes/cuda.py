"""A model of torch.cuda in virtual time, below tuilab/lab/device/: the code runs as on a GPU.

A kernel is launched now and done later, in the order of its stream. The clocks of the host are
replaced as well, so every number is exact: a launch, an event, a reading of a clock take the times
that `cuda_streams.py` lists.

By default the tests run every line of device/, timing.py and rounds.py on it. They cannot show
whether the driver of a real GPU behaves like this model. Not modelled: clocks that ramp, kernels of
two streams that share a GPU, graphs, copies, and a host that waits without using its core.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.fakes.cuda_gpu import SEGMENT, Gpu
from tests.fakes.cuda_installed import install
from tests.fakes.cuda_streams import CREATE, LAUNCH, LOOK, QUERY, RECORD, STATS, WAIT, Stream
from tuilab.lab.device import devices

CYCLES_PER_NS = 1.755


class FakeCuda:
    """The stand-in for torch.cuda in a test. `initialised_by` is the call that made the context."""

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
        """Note a call that needs a context. The first one makes it; after a sticky error all raise."""
        self.initialised_by = self.initialised_by or call
        if self.broken:
            raise torch.AcceleratorError(self.broken)

    def work(self, nanoseconds: float, stream: Stream | None = None, host: float = LAUNCH) -> None:
        """Launch a kernel on the current stream or another one. Tests do this millions of times."""
        if self.broken or not self.initialised_by:
            self.touch("a kernel")
        self.now += host
        gpu = self.tell()
        (stream or gpu.current).add(nanoseconds)

    def tell(self) -> Gpu:
        """Use the current GPU, and return it. It may refuse; other GPUs continue as before."""
        gpu = self.gpus[self.selected]
        gpu.is_touched = True
        if gpu.refuses:
            raise torch.AcceleratorError(gpu.refuses)
        return gpu

    @contextmanager
    def on(self, index: int) -> Iterator[None]:
        """Make a GPU the current one meanwhile, as an operator does for its tensors."""
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

    def set_stream(self, stream: Stream) -> None:
        self.gpus[stream.device_index].current = stream

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
        if not self.counts_asked:
            return {}
        return {"requested_bytes.all.peak": self.gpus[self.index_of(device)].asked_peak}

    def memory_stats_as_nested_dict(self, device: Any = None) -> dict[str, Any]:
        """Return what the allocator holds; nothing without a context.

        An allocator that asks the driver fails after a sticky error.
        """
        if not self.initialised_by:
            return {}
        if self.broken and not self.counts_asked:
            raise torch.AcceleratorError(self.broken)
        self.now += STATS
        gpu = self.gpus[self.index_of(device)]
        allocated = {"current": gpu.allocated, "peak": gpu.allocated_peak}
        reserved = {"current": gpu.reserved, "peak": gpu.reserved_peak}
        return {"allocated_bytes": {"all": allocated}, "reserved_bytes": {"all": reserved}}

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        self.touch("reset_peak_memory_stats")
        gpu = self.gpus[self.index_of(device)]
        gpu.allocated_peak = gpu.allocated
        gpu.reserved_peak = gpu.reserved
        gpu.asked_peak = gpu.asked

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


@pytest.fixture
def make_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeCuda]]:
    """Return a function that replaces torch.cuda and the clocks by a model with some GPUs."""
    devices.gpu.cache_clear()
    yield lambda count=2, initialised=True: install(monkeypatch, FakeCuda(count, initialised))
    devices.gpu.cache_clear()


@pytest.fixture
def cuda(make_cuda: Callable[..., FakeCuda]) -> FakeCuda:
    """Two GPUs, of which this process has used one before."""
    return make_cuda()


@pytest.fixture
def unused_cuda(make_cuda: Callable[..., FakeCuda]) -> FakeCuda:
    """Two GPUs, of which this process has used none."""
    return make_cuda(initialised=False)
