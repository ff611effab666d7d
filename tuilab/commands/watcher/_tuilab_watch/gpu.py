"""Measure on a GPU without ever waiting for the GPU.

A result lands later, in pinned memory or in an event, and is marked then.
Nothing is measured while a graph is captured. The measurements never create a context if the script
has none. Only the first GPU that a process uses is watched.

Calls of the driver are what measuring costs, so they are few: one event for each optimizer step,
whose time since the previous event is the length of the step. Parts of a step have events of their
own in some steps only; `part_sampling.py` chooses those.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from . import layout
from .gpu_numbers import GpuNumbers
from .part_sampling import PartSampling

_MOST = 1024  # timings that have not landed; more are not measured
# Landed results are looked for when there are so many new timings, or after so long.
_LOOK_TIMINGS = 32
_LOOK_NS = 100_000_000
_MEMORY_PERIOD_NS = 500_000_000  # between two readings of the memory that torch holds
_LAST_WAIT_S = 0.2  # for the last results, at the end of the script
_UNKNOWN = -1


class _Timing(NamedTuple):
    """The events of one timing, which belongs to the mark that ends at `key`."""

    began: Any  # an event; None if only the end is timed
    ended: Any  # an event
    previous_end: Any  # the event at the end of the previous timing, or None
    key: int
    stream: int
    number: int  # of this timing


class GpuMarks:
    """The events and numbers of one process that have not landed yet."""

    def __init__(self, watcher: Any, device: int) -> None:
        self.device = device
        self._watcher = watcher
        self._cuda: Any = sys.modules.get("torch.cuda")
        self._is_broken = self._cuda is None or not self._cuda.is_initialized()
        self._sampling = PartSampling(are_parts_watched=watcher.is_all)
        self._has_stepped_after_backward = False
        self._free: list[Any] = []  # events
        self._numbers = GpuNumbers(watcher, self._cuda, self._record, self._free.append)
        self._timings: deque[_Timing] = deque()
        self._count = 0  # of timings so far
        self._previous_end: Any = None  # the event at the end of the last timing
        self._awaited: _Timing | None = None  # the last timing when results were looked for
        self._landed = (0, 0)  # stream and number of the newest timing that is known to have landed
        self._looked_count = 0  # of timings when results were looked for
        self._looked_ns = 0
        self._get_raw_stream = getattr(watcher.torch._C, "_cuda_getCurrentRawStream", None)
        self._stream: Any = None  # the current stream at the last event
        self._memory_read_ns = 0
        self._uuid = 0  # the id of the UUID's name; 0: not put yet
        self._lock = threading.Lock()
        atexit.register(self.finish)

    # ---- times

    def begin_backward(self) -> Any:
        """Return an event at the beginning of a backward; None if it is not timed."""
        self._sampling.begin_backward()
        return self.begin_part()

    def begin_part(self) -> Any:
        """Return an event at the beginning of a part of a step; None if it is not timed."""
        if not self._sampling.is_on:
            return None
        return self._record_if_possible()

    def end_part(self, began: Any, key: int) -> bool:
        """Time a part of a step that ends now; return whether that is possible.

        The time gets a mark of its own. `key` is the end of the mark that the time belongs to.
        """
        if began is None and self._has_stepped_after_backward:
            return False
        # If optimizers step during backwards, a backward may be the end of a step.
        return self._time_since(began, key)

    def end_step(self, began: Any, key: int, *, is_within_backward: bool) -> bool:
        """Time the end of an optimizer step, and its length if `began` is an event.

        Return whether that is possible.
        """
        if not is_within_backward:
            self._has_stepped_after_backward = True
        self._sampling.end_optimizer_step()
        return self._time_since(began, key)

    def _time_since(self, began: Any, key: int) -> bool:
        ended = self._record_if_possible()
        if ended is None:
            self._previous_end = None  # the next timing cannot know the time since this one
            return False
        self._count += 1
        stream = self._stream.cuda_stream
        timing = _Timing(began, ended, self._previous_end, key, stream, self._count)
        self._timings.append(timing)
        self._previous_end = ended
        return True

    def _record_if_possible(self) -> Any:
        """Return an event recorded now; None if that is impossible, or too many have not landed."""
        try:
            if not self._can_record() or len(self._timings) >= _MOST:
                return None
            return self._record(self._current_stream())
        except Exception as problem:
            self._break(problem)
            return None

    def _record(self, stream: Any) -> Any:
        """Record an event in a stream, and return the event.

        If torch gets the stream as an argument, recording takes half as long.
        """
        if self._free:
            event = self._free.pop()
        else:
            event = self._cuda.Event(enable_timing=True)
        event.record(stream)
        return event

    def _current_stream(self) -> Any:
        """Return the current stream; making its object takes longer than comparing its address."""
        get_raw_stream = self._get_raw_stream
        if (
            get_raw_stream is None
            or self._stream is None
            or get_raw_stream(self.device) != self._stream.cuda_stream
        ):
            self._stream = self._cuda.current_stream(self.device)
        return self._stream

    def _can_record(self) -> bool:
        """Return whether an event may be recorded now, on the GPU that is watched."""
        if self._is_broken or self._cuda.is_current_stream_capturing():
            return False
        is_current: bool = self._cuda.current_device() == self.device
        return is_current

    # ---- numbers

    def mark_value_later(self, tensor: Any, key: int) -> int:
        """Put a value into a mark of its own once it has landed.

        Return the flag that announces the mark, or 0 if there will be none.
        """
        if self._keep(tensor, partial(self._mark_value, key), may_refer=True):
            return layout.LATE
        return 0

    def copy(self, tensor: Any, mark_value: Callable[[float], None]) -> bool:
        """Copy one number now, and give it to `mark_value` once it has landed.

        Return whether that is possible. The copy keeps the order of the stream: an operation that
        overwrites the number comes later.
        """

        def mark_number(number: float | None) -> None:
            if number is not None:
                mark_value(number)

        return self._keep(tensor, mark_number, may_refer=False)

    def _keep(self, tensor: Any, mark: Callable[[float | None], None], *, may_refer: bool) -> bool:
        try:
            if (
                tensor.numel() != 1
                or tensor.is_complex()
                or tensor.device.index != self.device
                or not self._can_record()
            ):
                return False
            return self._numbers.keep(tensor, self._current_stream(), mark, may_refer=may_refer)
        except Exception as problem:
            self._break(problem)
            return False

    def _mark_value(self, key: int, number: float | None) -> None:
        """Mark a value that has landed; None if it was overwritten before it could be copied."""
        if number is None:
            self._watcher.mark(layout.LANDED, key, 0)
        else:
            self._watcher.mark(layout.LANDED, key, 0, number, 0, 0, layout.HAS_VALUE)

    # ---- results

    def mark_landed(self) -> None:
        """Now and then, mark the results that have landed, and the memory that torch holds."""
        now_ns = time.monotonic_ns()
        is_due = self._count - self._looked_count >= _LOOK_TIMINGS
        if is_due or now_ns - self._looked_ns > _LOOK_NS:
            self._looked_ns = now_ns
            self._looked_count = self._count
            self._look()

    def finish(self) -> None:
        """Mark what has landed at the end of the script, and wait a moment for the rest."""
        deadline = time.monotonic() + _LAST_WAIT_S
        self._look(is_last=True)
        while not self._is_broken and time.monotonic() < deadline:
            if not self._timings and not self._numbers.are_landing:
                return
            time.sleep(0.005)
            self._look(is_last=True)

    def _look(self, *, is_last: bool = False) -> None:
        if not self._lock.acquire(False):
            return
        try:
            if self._can_record():
                self._numbers.land(is_last=is_last)
                self._mark_timings(is_last=is_last)
                self._mark_memory()
        except Exception as problem:
            self._break(problem)
        finally:
            self._lock.release()

    def _mark_timings(self, *, is_last: bool) -> None:
        """Mark the times of the work that has ended, oldest first.

        The GPU is asked for the timing that was the last one when this was called before. If it
        has landed, so have all before it in its stream.
        """
        timings = self._timings
        if self._awaited is not None:
            self._has_landed(self._awaited)
        self._awaited = timings[-1] if timings else None
        while timings:
            timing = timings[0]
            is_known = self._is_known_to_have_landed(timing)
            if not is_known and not (is_last and self._has_landed(timing)):
                return
            timings.popleft()
            self._mark_timing(timing)

    def _is_known_to_have_landed(self, timing: _Timing) -> bool:
        stream, number = self._landed
        if timing.stream == stream:
            return timing.number <= number
        return self._has_landed(timing)  # of another stream, whose order is not that of this one

    def _has_landed(self, timing: _Timing) -> bool:
        """Ask the GPU whether a timing has landed."""
        has_landed: bool = timing.ended.query()
        if has_landed:
            self._landed = (timing.stream, timing.number)
        return has_landed

    def _mark_timing(self, timing: _Timing) -> None:
        since_ns = _UNKNOWN
        if timing.previous_end is not None:
            since_ns = round(1e6 * timing.previous_end.elapsed_time(timing.ended))
            self._free.append(timing.previous_end)
        took_ms = float(_UNKNOWN)
        if timing.began is not None:
            took_ms = timing.began.elapsed_time(timing.ended)
            self._free.append(timing.began)
        self._watcher.mark(layout.WORKED, timing.key, since_ns, took_ms)

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

    def _break(self, problem: BaseException) -> None:
        """Stop measuring on the GPU after a call failed: the script will see that by itself."""
        self._is_broken = True
        self._watcher.fail(problem)


def uuid_of(cuda: Any, device: int) -> str:
    """Return the UUID of a GPU from torch; empty if torch does not know it.

    It is the UUID that NVML reports, without its beginning.
    """
    return str(getattr(cuda.get_device_properties(device), "uuid", ""))
