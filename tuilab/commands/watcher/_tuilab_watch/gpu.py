"""Measure on a GPU without ever waiting for the GPU.

A result lands later, in pinned memory or in an event, and is marked then.
Nothing is measured while a graph is captured. The measurements never create a context if the script
has none. Only the first GPU that a process uses is watched.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from . import layout

_MOST = 64  # timings, and copies, that have not landed; more are not measured
_MEMORY_PERIOD_NS = 500_000_000  # between two readings of the memory that torch holds


class GpuMarks:
    """The events and copies that have not landed yet."""

    def __init__(self, watcher: Any, device: int) -> None:
        self.device = device
        self._watcher = watcher
        self._cuda: Any = sys.modules.get("torch.cuda")
        self._is_broken = self._cuda is None or not self._cuda.is_initialized()
        self._free: list[Any] = []  # events
        # Begin event, end event, end event of the previous timing, key; see `time_since`.
        self._timings: deque[tuple[Any, Any, Any, int]] = deque()
        self._previous_end: Any = None  # an event
        # Event, pinned value, the list in `_free_values` that gets the value back, the function
        # that marks the number.
        self._copies: deque[tuple[Any, Any, list[Any], Callable[[float], None]]] = deque()
        self._free_values: dict[Any, list[Any]] = {}  # pinned, by dtype
        self._memory_read_ns = 0
        self._uuid = 0  # the id of the UUID's name; 0: not put yet
        self._lock = threading.Lock()
        atexit.register(self.mark_landed)

    def record_event(self) -> Any:
        """Record an event in the current stream, and return the event.

        Return None if that is not possible, or if too many timings have not landed.
        """
        try:
            if not self._can_record() or len(self._timings) >= _MOST:
                return None
            return self._record()
        except Exception as problem:
            self._break(problem)
            return None

    def time_since(self, began: Any, key: int) -> bool:
        """Time the work on the GPU from the event `began` to now; return whether that is possible.

        The time gets a mark of its own. `key` is the end of the mark that the time belongs to.
        """
        ended = None
        if began is not None:
            ended = self.record_event()
        if ended is None:
            self._previous_end = None  # the next timing cannot know the time since this one
            return False
        self._timings.append((began, ended, self._previous_end, key))
        self._previous_end = ended
        return True

    def mark_value_later(self, tensor: Any, key: int) -> int:
        """Put a value into a mark of its own once it has landed.

        Return the flag that announces the mark, or 0 if there will be none.
        """
        mark_value = partial(self._watcher.mark, layout.LANDED, key, 0)
        if self.copy(tensor, mark_value):
            return layout.LATE
        return 0

    def copy(self, tensor: Any, mark_value: Callable[[float], None]) -> bool:
        """Copy one number to the host; return whether that is possible.

        Once the number has landed, it is given to `mark_value`. The copy keeps the order of the
        stream: an operation that overwrites the number comes later.
        """
        try:
            if (
                tensor.numel() != 1
                or tensor.device.index != self.device
                or len(self._copies) >= _MOST
                or not self._can_record()
            ):
                return False
            free_values = self._free_values_of(tensor.dtype)
            value = free_values.pop()
            value.copy_(tensor.detach().reshape(()), non_blocking=True)
            event = self._record()
            self._copies.append((event, value, free_values, mark_value))
            return True
        except Exception as problem:
            self._break(problem)
            return False

    def _record(self) -> Any:
        """Record an event now, and return the event.

        If torch gets the stream as an argument, recording takes half as long.
        """
        if self._free:
            event = self._free.pop()
        else:
            event = self._cuda.Event(enable_timing=True)
        event.record(self._cuda.current_stream(self.device))
        return event

    def mark_landed(self) -> None:
        """Mark the results that have landed, and now and then the memory that torch holds."""
        if not self._lock.acquire(False):
            return
        try:
            if self._can_record():
                self._mark_copies()
                self._mark_timings()
                self._mark_memory()
        except Exception as problem:
            self._break(problem)
        finally:
            self._lock.release()

    def _mark_copies(self) -> None:
        """Mark the numbers that have landed, oldest first."""
        copies = self._copies
        while copies and copies[0][0].query():
            event, value, free_values, mark_value = copies.popleft()
            number = value.item()
            free_values.append(value)
            self._free.append(event)
            if isinstance(number, (int, float)):
                mark_value(float(number))

    def _mark_timings(self) -> None:
        """Mark the times of the work that has ended, oldest first."""
        timings = self._timings
        while timings and timings[0][1].query():
            began, ended, previous_end, key = timings.popleft()
            since_ns = -1  # unknown
            if previous_end is not None:
                since_ns = round(1e6 * previous_end.elapsed_time(ended))
            self._watcher.mark(layout.WORKED, key, since_ns, began.elapsed_time(ended))
            self._free.append(began)
            if previous_end is not None:
                self._free.append(previous_end)

    def _mark_memory(self) -> None:
        """Mark the memory that torch's allocator holds, unless that was done a moment ago."""
        now_ns = time.monotonic_ns()
        if now_ns - self._memory_read_ns < _MEMORY_PERIOD_NS:
            return
        self._memory_read_ns = now_ns
        if not self._uuid:
            uuid = uuid_of(self._cuda, self.device)
            self._uuid = self._watcher.name(f"{uuid}\nGPU")
        stats = self._cuda.memory_stats_as_nested_dict(self.device)
        allocated = stats.get("allocated_bytes", {}).get("all", {})
        reserved = stats.get("reserved_bytes", {}).get("all", {})
        self._watcher.mark(
            layout.HELD,
            allocated.get("current", 0),
            reserved.get("current", 0),
            float(allocated.get("peak", 0)),
            self.device,
            self._uuid,
        )

    def _can_record(self) -> bool:
        """Return whether an event may be recorded now, on the GPU that is watched."""
        if self._is_broken or self._cuda.is_current_stream_capturing():
            return False
        is_current: bool = self._cuda.current_device() == self.device
        return is_current

    def _free_values_of(self, dtype: Any) -> list[Any]:
        """Return the pinned values that are free; the first call for a dtype allocates them."""
        if dtype not in self._free_values:
            values = self._watcher.torch.empty(_MOST, dtype=dtype, pin_memory=True)
            self._free_values[dtype] = list(values.unbind())
        return self._free_values[dtype]

    def _break(self, problem: BaseException) -> None:
        """Stop measuring on the GPU after a call failed: the script will see that by itself."""
        self._is_broken = True
        self._watcher.fail(problem)


def uuid_of(cuda: Any, device: int) -> str:
    """Return the UUID of a GPU from torch; empty if torch does not know it.

    It is the UUID that NVML reports, without its beginning.
    """
    return str(getattr(cuda.get_device_properties(device), "uuid", ""))
