"""A GPU as a device: it is told now, and does it later."""

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from tuilab.lab.device.interface import AllocatorMemory, Clock
from tuilab.lab.device.torch_gpus import first_sentence
from tuilab.text.display import show

Event = torch.cuda.Event

_FIRST_BYTES = 512
_SLEEP_CYCLES = (
    1_000_000  # half a millisecond or more, beside which the tick of an event's clock is little
)
_SLEEPS = 4  # the first loads the kernel, the second may find a clock that sleeps itself


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
                torch.cuda.caching_allocator_delete(
                    torch.cuda.caching_allocator_alloc(_FIRST_BYTES)
                )
                torch.cuda._sleep(1)
            self.wait()
        except RuntimeError as problem:
            return first_sentence(problem)
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
        """Say whether it has got as far as the mark of begin."""
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
        if torch.cuda.current_device() == self.index:
            return torch.cuda.is_current_stream_capturing()
        with self.selected():
            return torch.cuda.is_current_stream_capturing()

    def held(self) -> AllocatorMemory:
        return AllocatorMemory(
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

    def holds(self) -> tuple[int, int, int] | None:
        """Return the bytes that torch has given out, has reserved, and had given out at most.

        It alone is asked, nothing waits, no context is made.

        While a graph is recorded it is not asked: an allocator that asks the driver would spoil it.
        """
        try:
            if self.is_capturing():
                return None
            stats = torch.cuda.memory_stats_as_nested_dict(self.index)
            allocated, reserved = (
                stats[f"{name}_bytes"]["all"] for name in ("allocated", "reserved")
            )
            return allocated["current"], reserved["current"], allocated["peak"]
        except (
            KeyError,
            RuntimeError,
        ):  # nothing was used yet; an allocator that asks the driver, after an error
            return None

    def reset_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats(self.index)

    def numbers(self, count: int, dtype: torch.dtype) -> list[torch.Tensor]:
        """Make numbers of the host that this GPU writes to by itself; it takes long, and is seen by no meter of operators."""
        with (
            self.selected(),
            torch._C._DisableTorchDispatch(),
            torch.inference_mode(False),
            torch.no_grad(),
        ):
            return list(torch.empty(count, dtype=dtype, device="cpu", pin_memory=True).unbind())

    def send(self, value: torch.Tensor, number: torch.Tensor) -> None:
        """Copy a value of this GPU to one of its numbers, in the current stream of it."""
        number.copy_(value.detach() if value.requires_grad else value, non_blocking=True)

    def flag(self, event: Event | None = None) -> Event:
        """Return an event, which may have been used before, that has come when all is done that the current stream was told."""
        event = event or torch.cuda.Event()
        event.record(torch.cuda.current_stream(self.index))
        return event

    @contextmanager
    def streams_entered(self) -> Iterator[list[object]]:
        """Note which streams are entered meanwhile, as `with torch.cuda.stream(...)` does it."""
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
