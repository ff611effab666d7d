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
        # All of these are in bytes.
        self.allocated = 0
        self.allocated_peak = 0
        self.reserved = 0
        self.reserved_peak = 0
        self.asked = 0
        self.asked_peak = 0
        self.room = 80 << 30  # for all allocations
        self.is_touched = False  # whether this process has a context there
        self.refuses = ""  # the error of the first use of the GPU, which counts all the same

    def allocate(self, size: int, asked: int | None = None) -> None:
        """Give out so many bytes, or take them back. The program has asked for `asked` of them."""
        self.allocated += size
        self.asked += size if asked is None else asked
        self.asked_peak = max(self.asked_peak, self.asked)
        self.reserved = max(self.reserved, math.ceil(self.allocated / SEGMENT) * SEGMENT)
        self.allocated_peak = max(self.allocated_peak, self.allocated)
        self.reserved_peak = max(self.reserved_peak, self.reserved)
