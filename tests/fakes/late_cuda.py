"""GPUs whose kernels finish later, below tuilab/lab/device/: tensors, streams, events and copies.

A tensor gets its value when its stream reaches the kernel; until then it has the content of fresh
memory. A stream advances only when the scenario waits for it, or by `pace` kernels for each query of
an event: a GPU of pace 0 hangs. After `fail` each call raises, as after a sticky error. Not modelled:
memory that is used again, the amount of memory, the null stream, gradients.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_map

from tuilab.lab.device import devices

FRESH = -777.0
_COUNTERS = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
_VIEWS = ("detach", "view", "_unsafe_view", "alias", "select", "unsqueeze", "squeeze")


class LateStream:
    """Kernels in one order."""

    def __init__(self, gpu: "LateGpu") -> None:
        self.gpu = gpu
        self.kernels: deque[Callable[[], object]] = deque()

    def add(self, kernel: Callable[[], object]) -> None:
        self.gpu.check()
        self.kernels.append(kernel)

    def get_on(self, count: int) -> None:
        """Compute the next kernels. A torch mode of the host does not see their operators."""
        with torch._C._DisableTorchDispatch():
            for _ in range(min(count, len(self.kernels))):
                self.kernels.popleft()()

    def synchronize(self) -> None:
        self.gpu.check()
        assert self.gpu.pace, "this would hang"
        self.get_on(len(self.kernels))

    def wait_stream(self, other: "LateStream") -> None:
        self.add(lambda: other.get_on(len(other.kernels)))


class LateEvent:
    """A mark in a stream, which may be set again and again."""

    made = 0  # of all

    def __init__(self) -> None:
        LateEvent.made += 1
        self._mark: list[bool] = [True]

    def record(self, stream: LateStream) -> None:
        mark = [False]

        def set_mark() -> None:
            mark[0] = True

        self.stream = stream
        self._mark = mark
        stream.add(set_mark)

    def query(self) -> bool:
        gpu = self.stream.gpu
        gpu.check()
        gpu.queries += 1
        assert not gpu.is_recording_graph, "operation not permitted when stream is capturing"
        self.stream.get_on(gpu.pace)
        return self._mark[0]


class LateGpu:
    """One GPU: its current stream, and how it fares."""

    def __init__(self) -> None:
        self.pace = 1
        self.error = ""
        self.queries = 0
        self.is_recording_graph = False
        self.current = LateStream(self)

    def check(self) -> None:
        if self.error:
            raise torch.AcceleratorError(self.error)

    def is_capturing(self) -> bool:
        """Whether the current stream records a graph. Only the main thread records."""
        self.check()
        return self.is_recording_graph and threading.current_thread() is threading.main_thread()

    def fail(self, error: str) -> None:
        """Fail as after a device-side assert: for good."""
        self.error = error

    @contextlib.contextmanager
    def stream(self) -> Iterator[LateStream]:
        """Work on another stream meanwhile, as under `torch.cuda.stream(torch.cuda.Stream())`."""
        before, self.current = self.current, LateStream(self)
        yield self.current
        self.current = before


class LateTensor(torch.Tensor):
    """A tensor on a GPU. `read` returns its present value as a tensor on the host."""

    gpus: list[LateGpu] = []

    @staticmethod
    def __new__(
        cls, like: torch.Tensor, index: int, read: Callable[[], torch.Tensor]
    ) -> "LateTensor":
        device = torch.device("cuda", index)
        return torch.Tensor._make_wrapper_subclass(
            cls, like.shape, dtype=like.dtype, strides=like.stride(), device=device
        )

    def __init__(self, like: torch.Tensor, index: int, read: Callable[[], torch.Tensor]) -> None:
        self.read = read

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        (index, *_) = {arg.device.index for arg in args if isinstance(arg, LateTensor)}
        stream = cls.gpus[index].current
        name = func.__name__.partition(".")[0]
        if name == "_local_scalar_dense":
            stream.synchronize()
            return args[0].read().item()
        if name == "copy_" and not isinstance(args[0], LateTensor):
            assert args[2:] == (True,), "a copy that waits"
            stream.add(lambda: args[0].copy_(args[1].read()))
            return args[0]

        def compute() -> Any:
            return func(*tree_map(_read, args), **(kwargs or {}))

        if name.endswith("_"):
            stream.add(compute)
            return args[0]
        like = func(*tree_map(_meta, args), **(kwargs or {}))
        if name in _VIEWS:  # no kernel
            return LateTensor(like, index, compute)
        value = [torch.full(like.shape, FRESH, device="cpu").to(like.dtype)]

        def run_kernel() -> None:
            value[0] = compute()

        stream.add(run_kernel)
        return LateTensor(like, index, lambda: value[0])


class LateCuda:
    """The stand-in for torch.cuda in a test."""

    def __init__(self, count: int) -> None:
        self.gpus = LateTensor.gpus = [LateGpu() for _ in range(count)]

    def tensor(self, value: Any, index: int = 0, dtype: torch.dtype = torch.float32) -> LateTensor:
        """Return a tensor that has its value on a GPU already."""
        on_host = torch.tensor(value, dtype=dtype, device="cpu")
        return LateTensor(on_host, index, lambda: on_host)


def install(patch: pytest.MonkeyPatch, count: int = 2) -> LateCuda:
    """Put GPUs in the place of torch.cuda."""
    cuda = LateCuda(count)
    LateEvent.made = 0
    devices.gpu.cache_clear()
    make = torch.empty

    def empty(*size: Any, pin_memory: bool = False, **more: Any) -> torch.Tensor:
        tensor = make(*size, **more)
        if pin_memory:
            tensor.fill_(FRESH)
        return tensor

    selected = [0]

    @contextlib.contextmanager
    def device(index: int) -> Iterator[None]:
        before, selected[0] = selected[0], index
        try:
            yield
        finally:
            selected[0] = before

    of_torch = SimpleNamespace(
        Event=LateEvent,
        current_stream=lambda index: cuda.gpus[index].current,
        current_device=lambda: selected[0],
        is_initialized=lambda: True,
        is_current_stream_capturing=lambda: cuda.gpus[selected[0]].is_capturing(),
        device=device,
        synchronize=lambda index: cuda.gpus[index].current.synchronize(),
        reset_peak_memory_stats=lambda index: None,
        **dict.fromkeys(_COUNTERS, lambda index: 0),
    )
    for name, value in vars(of_torch).items():
        patch.setattr(torch.cuda, name, value)
    patch.setattr(torch, "empty", empty)
    return cuda


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[LateCuda]:
    """Put two GPUs in the place of torch.cuda."""
    yield install(monkeypatch)
    devices.gpu.cache_clear()


def _read(value: Any) -> Any:
    """Return the present value of a tensor of a GPU, and any other value as it is."""
    return value.read() if isinstance(value, LateTensor) else value


def _meta(value: Any) -> Any:
    """Return a tensor of a GPU without its numbers, and any other value as it is."""
    if not isinstance(value, LateTensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
