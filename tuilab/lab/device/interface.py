"""The interface of a device, CPU or GPU, for the lab."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

Clock = Callable[[], int]  # in nanoseconds


class AllocatorMemory(NamedTuple):
    """The memory of torch's allocator on a GPU, now and at most, in bytes."""

    allocated: int
    reserved: int
    allocated_peak: int
    reserved_peak: int
    requested_peak: int  # without the rounding of blocks; 0 if the allocator does not count it


class Device(Protocol):
    """A device on which arms run."""

    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...
    @property
    def uuid(self) -> str:
        """The UUID, which NVML knows as well; empty if there is none."""

    def wait(self) -> None:
        """Wait until all work on all streams of the device is done."""

    def selected(self) -> AbstractContextManager[Any]:
        """Make it the current device in a `with` block."""

    def make_ready(self) -> None:
        """Prepare everything that timing needs, so that no block pays for it."""

    def begin(self) -> None:
        """Mark the beginning of a block on the current stream, with an event that is used again."""

    def end(self) -> None:
        """Mark the end of a block on the current stream."""

    def stream_ns(self) -> int | None:
        """Return the time between the marks, after waiting for the device; None without streams."""

    def is_idle(self) -> bool:
        """Say whether the current stream has nothing left to do."""

    def delay(self, nanoseconds: float, clock: Clock) -> None:
        """Keep the device busy for so long; on a CPU by this clock."""

    def is_capturing(self) -> bool:
        """Say whether the current stream captures a graph instead of running kernels."""

    def held(self) -> AllocatorMemory | None:
        """Return the memory of torch's allocator, or None without an allocator that counts."""

    def reset_peak(self) -> None:
        """Reset the peaks of the allocator to the current values."""
