"""A GPU as a device: calls queue work, which the GPU does later."""

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from tuilab.lab.device.interface import AllocatorMemory, Clock
from tuilab.lab.device.torch_gpus import first_sentence
from tuilab.text.display import show

Event = torch.cuda.Event

_FIRST_BYTES = 512  # of the first allocation, the smallest block of torch's allocator
_SLEEP_CYCLES = 1_000_000  # half a millisecond or more, which is much longer than a tick of events
_SLEEPS = 4  # the first loads the kernel, and during the second the clock may still rise


class Cuda:
    """A GPU. Its current stream is found by its index, because another GPU may be current."""

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
        """The name of compilers for it, such as sm_90."""
        properties = torch.cuda.get_device_properties(self.index)
        return f"sm_{properties.major}{properties.minor}"

    def why_not(self) -> str:
        """Run a first kernel; return the error of the driver, or an empty string if it ran."""
        try:
            with self.selected():
                torch.cuda.caching_allocator_delete(
                    torch.cuda.caching_allocator_alloc(_FIRST_BYTES)
                )
                torch.cuda._sleep(1)
            self.wait()
        except RuntimeError as problem:
            return first_sentence(problem)
        return ""

    def make_current(self) -> None:
        """Make it the current device, so that code that names no GPU does not use the first one."""
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
        """Say whether the GPU has reached the mark of `begin`."""
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
        """Say whether the current stream captures a graph; False if CUDA is not in use here."""
        if not torch.cuda.is_initialized():
            return False
        if torch.cuda.current_device() == self.index:
            return torch.cuda.is_current_stream_capturing()
        with self.selected():
            return torch.cuda.is_current_stream_capturing()

    def held(self) -> AllocatorMemory:
        """Return the memory of torch's allocator, now and at most."""
        return AllocatorMemory(
            torch.cuda.memory_allocated(self.index),
            torch.cuda.memory_reserved(self.index),
            torch.cuda.max_memory_allocated(self.index),
            torch.cuda.max_memory_reserved(self.index),
            torch.cuda.memory_stats(self.index).get("requested_bytes.all.peak", 0),
        )

    def empty_cache(self) -> None:
        """Return unused memory of the allocator to the driver."""
        with self.selected():
            torch.cuda.empty_cache()

    def holds(self) -> tuple[int, int, int] | None:
        """Return the allocated and reserved bytes, and the peak of the allocated ones.

        Only torch is asked: nothing waits, and no context is created. Returns None during the
        capture of a graph, because an allocator that asks the driver would break it, and if torch
        knows nothing.
        """
        try:
            if self.is_capturing():
                return None
            stats = torch.cuda.memory_stats_as_nested_dict(self.index)
            allocated = stats["allocated_bytes"]["all"]
            reserved = stats["reserved_bytes"]["all"]
            return allocated["current"], reserved["current"], allocated["peak"]
        except (KeyError, RuntimeError):  # not used yet, or the driver fails after an error
            return None

    def reset_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats(self.index)

    def numbers(self, count: int, dtype: torch.dtype) -> list[torch.Tensor]:
        """Allocate pinned scalars to which the GPU can copy.

        This is slow, and no meter counts it.
        """
        with (
            self.selected(),
            torch._C._DisableTorchDispatch(),
            torch.inference_mode(False),
            torch.no_grad(),
        ):
            return list(torch.empty(count, dtype=dtype, device="cpu", pin_memory=True).unbind())

    def send(self, value: torch.Tensor, number: torch.Tensor) -> None:
        """Copy a value of this GPU to a pinned scalar, on its current stream."""
        number.copy_(value.detach() if value.requires_grad else value, non_blocking=True)

    def flag(self, event: Event | None = None) -> Event:
        """Record an event, which may be a used one, after the queued work of the current stream."""
        event = event or torch.cuda.Event()
        event.record(torch.cuda.current_stream(self.index))
        return event

    @contextmanager
    def streams_entered(self) -> Iterator[list[object]]:
        """Collect the streams that are entered in a `with` block."""
        entered: list[object] = []
        enter = torch.cuda.set_stream

        def note(stream: Any) -> None:
            entered.append(stream)
            enter(stream)

        torch.cuda.set_stream = note
        try:
            yield entered
        finally:
            torch.cuda.set_stream = enter

    @functools.cached_property
    def _marks(self) -> "list[torch.cuda.Event]":
        """Create the events and record each once.

        Torch creates an event when it is first recorded.
        """
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        for mark in marks:
            mark.record(torch.cuda.current_stream(self.index))
        return marks

    def _mark(self, number: int) -> None:
        self._marks[number].record(torch.cuda.current_stream(self.index))

    @functools.cached_property
    def _cycles_per_ns(self) -> float:
        """Measure the clock that `_sleep` counts, which differs between GPUs.

        The last sleep is queued while those before it run, so that its launch is not measured.
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
