"""The streams and events of `tests/fakes/cuda.py`: kernels in one order, and when each is done."""

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

# How long calls take on the host, in nanoseconds.
LAUNCH = 4_000
RECORD = 1_500
CREATE = 800
WAIT = 5_000
QUERY = 500
LOOK = 40
STATS = 30_000
QUEUE = 1024  # kernels in the queue of a stream; if it is full, the host waits


class Stream:
    """What is told to a GPU in one order: when each of it is done."""

    def __init__(self, cuda: "FakeCuda", device: int) -> None:
        self.cuda, self.device_index = cuda, device
        self.free_at = 0.0
        self._queue: deque[float] = deque()
        cuda.gpus[device].streams.append(self)

    def add(self, nanoseconds: float) -> float:
        """Add a kernel as soon as the queue has a free place. Return when the kernel is done."""
        queue, now = self._queue, self.cuda.now
        while queue and queue[0] <= now:
            queue.popleft()
        if len(queue) >= QUEUE:
            now = self.cuda.now = queue.popleft()
        begin = self.free_at
        if begin < now:  # `max` takes longer, and this is done millions of times
            begin = now
        self.free_at = begin + nanoseconds
        queue.append(self.free_at)
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
        if (
            self.device_index is None
            or end.device_index is None
            or self.device_index != end.device_index
        ):
            raise RuntimeError("CUDA error: invalid resource handle")
        if max(self.at, end.at) > self.cuda.now:
            raise RuntimeError("CUDA error: device not ready")
        return (self._tick(end.at) - self._tick(self.at)) / 1e6

    def _tick(self, at: float) -> float:
        return at // self.cuda.tick * self.cuda.tick if self.cuda.tick else at
