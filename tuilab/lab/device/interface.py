"""What the lab asks of a device, whichever it is."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

Clock = Callable[[], int]  # in nanoseconds


class AllocatorMemory(NamedTuple):
    """What torch's allocator holds on a GPU, and held at most, in bytes."""

    allocated: int
    reserved: int
    allocated_peak: int
    reserved_peak: int
    requested_peak: (
        int  # of allocated, what was asked for; 0 from an allocator that does not count it
    )


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

    def held(self) -> AllocatorMemory | None:
        """Return what torch's allocator holds on it; None where nobody counts."""

    def reset_peak(self) -> None:
        """Let the most that is held begin anew."""
