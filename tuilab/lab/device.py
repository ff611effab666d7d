"""The one door to the device that a scenario runs on: no other file of tuilab asks torch.cuda anything.

Behind it stand Cpu, which has done what it was told when a call returns, and Cuda, which is told now and does it later.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import torch

from tuilab.probes import NotKnown, gather
from tuilab.text import show

PRECISIONS = ("ieee", "tf32")
Clock = Callable[[], int]  # in nanoseconds
Event = torch.cuda.Event

_FIRST_BYTES = 512
_SLEEP_CYCLES = 1_000_000  # half a millisecond or more, beside which the tick of an event's clock is little
_SLEEPS = 4  # the first loads the kernel, the second may find a clock that sleeps itself


class Held(NamedTuple):
    """What torch's allocator holds on a GPU, and held at most, in bytes."""

    allocated: int
    reserved: int
    allocated_peak: int
    reserved_peak: int
    requested_peak: int  # of allocated, what was asked for; 0 from an allocator that does not count it


class Device(Protocol):
    """What the lab asks of a device."""

    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...
    @property
    def uuid(self) -> str:
        """The name by which NVML knows it, too; nothing where there is none."""

    def wait(self) -> None:
        """Wait until all that the device was given is done, on each of its streams."""

    def selected(self) -> AbstractContextManager[Any]:
        """Make it the current device meanwhile."""

    def make_ready(self) -> None:
        """Make and measure what a block needs, so that nothing of it is made in one."""

    def begin(self) -> None:
        """Mark on the current stream where a block begins; one of the same two marks in each block."""

    def has_begun(self) -> bool:
        """Say whether the device has got as far as that."""

    def end(self) -> None:
        """Mark where it ends."""

    def stream_ns(self) -> int | None:
        """Return the time between the marks of begin and end, once it was waited for; None where there is no stream."""

    def is_idle(self) -> bool:
        """Say whether the current stream has nothing left to do."""

    def delay(self, nanoseconds: float, clock: Clock) -> None:
        """Keep the device busy so long, by the clock where it is that of the host."""

    def is_capturing(self) -> bool:
        """Say whether the current stream records a graph instead of working."""

    def held(self) -> Held | None:
        """Return what torch's allocator holds on it; None where nobody counts."""

    def reset_peak(self) -> None:
        """Let the most that is held begin anew."""


class Cpu:
    """The host: what it was told is done when the call returns."""

    type = "cpu"
    index = None
    uuid = ""

    def wait(self) -> None:
        pass

    def selected(self) -> AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def make_ready(self) -> None:
        pass

    def begin(self) -> None:
        pass

    def has_begun(self) -> bool:
        return True

    def end(self) -> None:
        pass

    def stream_ns(self) -> int | None:
        return None

    def is_idle(self) -> bool:
        return True

    def delay(self, nanoseconds: float, clock: Clock) -> None:
        until = clock() + nanoseconds
        while clock() < until:  # sleeping would give the core away
            pass

    def is_capturing(self) -> bool:
        return False

    def held(self) -> Held | None:
        return None

    def reset_peak(self) -> None:
        pass


class Cuda:
    """A GPU: what it is told waits in streams, which are asked for by its index, as the current device may be another one."""

    type = "cuda"

    def __init__(self, index: int) -> None:
        self.index = index

    @functools.cached_property
    def uuid(self) -> str:
        return str(getattr(torch.cuda.get_device_properties(self.index), "uuid", ""))

    @property
    def torch_device(self) -> torch.device:
        return torch.device("cuda", self.index)

    @property
    def name(self) -> str:
        return show(torch.cuda.get_device_properties(self.index).name, 200)

    @property
    def architecture(self) -> str:
        """What compilers call it: sm_90."""
        of_it = torch.cuda.get_device_properties(self.index)
        return f"sm_{of_it.major}{of_it.minor}"

    def why_not(self) -> str:
        """Run a first kernel, and return why it does not run, in the driver's words: a GPU that is counted may still refuse."""
        try:
            with self.selected():
                torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(_FIRST_BYTES))
                torch.cuda._sleep(1)
            self.wait()
        except RuntimeError as problem:
            return _first_sentence(problem)
        return ""

    def make_current(self) -> None:
        """Let what names no GPU run on this one, too; else it would take memory of the first."""
        torch.cuda.set_device(self.index)

    def wait(self) -> None:
        torch.cuda.synchronize(self.index)

    def selected(self) -> AbstractContextManager[Any]:
        return torch.cuda.device(self.index)

    def make_ready(self) -> None:
        assert self._cycles_per_ns > 0

    def begin(self) -> None:
        self._mark(0)

    def has_begun(self) -> bool:
        return bool(self._marks[0].query())

    def end(self) -> None:
        self._mark(1)

    def stream_ns(self) -> int:
        begin, end = self._marks
        return int(begin.elapsed_time(end) * 1e6)

    def is_idle(self) -> bool:
        return not torch.cuda.is_initialized() or torch.cuda.current_stream(self.index).query()

    def delay(self, nanoseconds: float, clock: Clock) -> None:
        self._sleep(round(nanoseconds * self._cycles_per_ns))

    def is_capturing(self) -> bool:
        if not torch.cuda.is_initialized():
            return False
        with self.selected():
            return torch.cuda.is_current_stream_capturing()

    def held(self) -> Held:
        return Held(
            torch.cuda.memory_allocated(self.index),
            torch.cuda.memory_reserved(self.index),
            torch.cuda.max_memory_allocated(self.index),
            torch.cuda.max_memory_reserved(self.index),
            torch.cuda.memory_stats(self.index).get("requested_bytes.all.peak", 0),
        )

    def empty_cache(self) -> None:
        """Give back to the driver what the allocator holds and nobody uses."""
        with self.selected():
            torch.cuda.empty_cache()

    def holds(self) -> tuple[int, int] | None:
        """Return the bytes that torch has given out and has reserved; it alone is asked, nothing waits, no context is made.

        While a graph is recorded it is not asked: an allocator that asks the driver would spoil it.
        """
        try:
            if self.is_capturing():
                return None
            stats = torch.cuda.memory_stats_as_nested_dict(self.index)
            return stats["allocated_bytes"]["all"]["current"], stats["reserved_bytes"]["all"]["current"]
        except (KeyError, RuntimeError):  # nothing was used yet; an allocator that asks the driver, after an error
            return None

    def reset_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats(self.index)

    def numbers(self, count: int) -> list[torch.Tensor]:
        """Make numbers of the host that this GPU writes to by itself; it takes long, and is seen by no meter of operators."""
        with self.selected(), torch._C._DisableTorchDispatch(), torch.inference_mode(False), torch.no_grad():
            return list(torch.empty(count, dtype=torch.float64, device="cpu", pin_memory=True).unbind())

    def send(self, value: torch.Tensor, number: torch.Tensor) -> None:
        """Copy a value of this GPU to one of its numbers, in the current stream of it."""
        with torch.no_grad():
            number.copy_(value, non_blocking=True)

    def flag(self, event: Event | None = None) -> Event:
        """Return an event, which may have been used before, that has come when all is done that the current stream was told."""
        event = event or torch.cuda.Event()
        event.record(torch.cuda.current_stream(self.index))
        return event

    @functools.cached_property
    def _marks(self) -> "list[torch.cuda.Event]":
        """Make the events by recording each once: torch makes one when it is first recorded, and a block would pay for it."""
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        for mark in marks:
            mark.record(torch.cuda.current_stream(self.index))
        return marks

    def _mark(self, number: int) -> None:
        self._marks[number].record(torch.cuda.current_stream(self.index))

    @functools.cached_property
    def _cycles_per_ns(self) -> float:
        """Measure how fast the delay goes: it counts cycles of a clock that differs from GPU to GPU.

        The last one is told while those before it go on, so that the time until it is told is no part of it.
        """
        for _ in range(_SLEEPS):
            self.begin()
            self._sleep(_SLEEP_CYCLES)
            self.end()
        self.wait()
        return _SLEEP_CYCLES / max(self.stream_ns(), 1)

    def _sleep(self, cycles: int) -> None:
        with self.selected():
            torch.cuda._sleep(cycles)


_HOST = Cpu()
gpu = functools.cache(Cuda)  # one of each, as its events are used again and again


def door(device: torch.device) -> Device:
    """Return what to ask of a device; of CUDA without an index it is the current one. ValueError for one of a third kind."""
    if device.type == "cpu":
        return _HOST
    if device.type != "cuda":
        raise ValueError(f"device takes the CPU or a CUDA device, not {device}")
    return gpu(torch.cuda.current_device() if device.index is None else device.index)


@contextlib.contextmanager
def precision(name: str) -> Iterator[None]:
    """Let GPUs multiply and convolve float32 as it is ("ieee") or cut to TF32 ("tf32") meanwhile; asks no GPU anything."""
    matmul: Any = torch.backends.cuda.matmul  # torch does not tell the types of its switches
    cudnn: Any = torch.backends.cudnn
    newer = (matmul, cudnn.conv, cudnn.rnn)
    before = [one.fp32_precision for one in newer]
    try:
        older = matmul.allow_tf32, cudnn.allow_tf32
    except RuntimeError:  # a scenario that has used the newer switches: torch reads the older ones no more
        older = None
    if older:
        matmul.allow_tf32 = cudnn.allow_tf32 = name == "tf32"
    for one in newer:
        one.fp32_precision = name
    try:
        yield
    finally:
        if older:
            matmul.allow_tf32, cudnn.allow_tf32 = older
        for one, precision_before in zip(newer, before, strict=True):
            one.fp32_precision = precision_before


def in_use(device: torch.device | None = None) -> Device:
    """Return the GPU that this process works on, `device` if it is one; the CPU where CUDA does not run in this process.

    To ask a GPU that nobody here uses would take memory of it, and fail where others have all of it.
    """
    if not torch.cuda.is_initialized():
        return _HOST
    return door(device if device is not None and device.type == "cuda" else torch.device("cuda"))


def all_in_use() -> Iterator[Cuda]:
    """Yield the GPUs on which this process holds memory; work on a tensor holds some."""
    if torch.cuda.is_initialized():
        yield from (gpu(index) for index in range(count()) if torch.cuda.memory_reserved(index))


def why_no_cuda() -> str:
    """Return why CUDA cannot be used here, in torch's own words where it has some; nothing when it can."""
    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} is a build without CUDA"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    hidden = "" if visible is None else f" (CUDA_VISIBLE_DEVICES is {show(visible, 60) or 'empty'})"
    return f"torch sees no CUDA device: {_refusal()}{hidden}"


def _refusal() -> str:
    """Return what torch says where it cannot start CUDA; where it could not even count devices, this makes no context."""
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as problem:
        return _first_sentence(problem)
    return "it counts none"


def _first_sentence(problem: Exception) -> str:
    """Return the first sentence of an error; those of CUDA go on with advice for who wrote the kernel."""
    line = (str(problem).splitlines() or [type(problem).__name__])[0]
    return show(line.partition(". ")[0].rstrip("."), 300)


def count() -> int:
    """Return how many GPUs torch sees; it touches none."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def architectures() -> list[str]:
    """Return for what this torch was compiled: sm_90 is machine code, compute_90 what a driver translates."""
    return torch.cuda.get_arch_list()


def facts() -> dict[str, Any]:
    """Return the CUDA devices that torch sees; this initialises CUDA's runtime."""
    return gather({"devices": _devices})


def _devices() -> list[dict[str, Any]]:
    if reason := why_no_cuda():
        raise NotKnown(reason)
    return [_facts_of(torch.cuda.get_device_properties(index)) for index in range(count())]


def _facts_of(device: Any) -> dict[str, Any]:
    """Describe one device; its place in the list is CUDA's index, its uuid ends NVML's."""
    return gather(
        {
            "name": lambda: show(device.name, 200),
            "capability": lambda: f"{device.major}.{device.minor}",
            "uuid": lambda: str(device.uuid),
            "memory_bytes": lambda: int(device.total_memory),
            "multiprocessors": lambda: int(device.multi_processor_count),
        }
    )


def memory_summary() -> str:
    """Return torch's account of the memory of the GPUs that this process uses; nothing where that cannot be had."""
    try:
        return "\n".join(torch.cuda.memory_summary(gpu.index) + "\n" for gpu in all_in_use())
    except RuntimeError:
        return ""
