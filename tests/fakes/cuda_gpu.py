"""One GPU of `tests/fakes/cuda.py`."""

import math

from tests.fakes.cuda_streams import Stream

SEGMENT = 2 << 20  # bytes that the allocator reserves at a time


class Gpu:
    """One GPU: its streams, and what the allocator holds on it."""

    def __init__(self, number: int) -> None:
        self.uuid = f"GPU-{number:08d}-0000-0000-0000-000000000000"
        self.streams: list[Stream] = []
        self.current: Stream
        self.allocated = self.allocated_peak = self.reserved = self.reserved_peak = self.asked = (
            self.asked_peak
        ) = 0
        self.room = 80 << 30  # bytes for those who allocate
        self.is_touched = False  # somebody in this process has a context there
        self.refuses = (
            ""  # what the driver says to the first that is told to it; it is counted all the same
        )

    def allocate(self, size: int, asked: int | None = None) -> None:
        """Give out so many bytes, or take them back; `asked` is for how many the program has asked."""
        self.allocated += size
        self.asked += size if asked is None else asked
        self.asked_peak = max(self.asked_peak, self.asked)
        self.reserved = max(self.reserved, math.ceil(self.allocated / SEGMENT) * SEGMENT)
        self.allocated_peak = max(self.allocated_peak, self.allocated)
        self.reserved_peak = max(self.reserved_peak, self.reserved)
