"""Measure on a GPU without ever waiting for it: results land later, in pinned memory or in events.

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
_HELD_NS = 500_000_000  # between two readings of the memory that torch holds


class GpuMarks:
    """The events and copies that have not landed yet."""

    def __init__(self, watcher: Any, device: int) -> None:
        self.device = device
        self._watcher = watcher
        self._cuda: Any = sys.modules.get("torch.cuda")
        self._is_broken = self._cuda is None or not self._cuda.is_initialized()
        self._free: list[Any] = []  # events
        # Begin event, end event, end event of the previous timing, key; see `times`.
        self._timed: deque[tuple[Any, Any, Any, int]] = deque()
        self._before: Any = None
        # Event, pinned value, the list in `_rooms` that gets it back, the function that marks it.
        self._copies: deque[tuple[Any, Any, list[Any], Callable[[float], None]]] = deque()
        self._rooms: dict[Any, list[Any]] = {}  # pinned values that are free, by dtype
        self._held_at = 0
        self._uuid = 0
        self._lock = threading.Lock()
        atexit.register(self.land)

    def event(self) -> Any:
        """Record an event in the current stream, and return the event.

        Return None if that is not possible, or if too many timings have not landed.
        """
        try:
            if not self._can_record() or len(self._timed) >= _MOST:
                return None
            return self._recorded()
        except Exception as problem:
            return self._break(problem)

    def times(self, began: Any, key: int) -> bool:
        """Time the work on the GPU from the event `began` to now; return whether that is possible.

        The time gets a mark of its own. `key` is the end of the mark that the time belongs to.
        """
        ended = None if began is None else self.event()
        if ended is None:
            self._before = None  # the next timing cannot know the time since this one
            return False
        self._timed.append((began, ended, self._before, key))
        self._before = ended
        return True

    def lands(self, tensor: Any, key: int) -> int:
        """Put a value into a mark of its own once it has landed.

        Return the flag that announces the mark, or 0 if there will be none.
        """
        tell = partial(self._watcher.mark, layout.LANDED, key, 0)
        return layout.LATE if self.copy(tensor, tell) else 0

    def copy(self, tensor: Any, tell: Callable[[float], None]) -> bool:
        """Copy one number to the host, and call `tell` once it has landed; return whether it will.

        The copy keeps the order of the stream: an operation that overwrites the number comes later.
        """
        try:
            if (
                tensor.numel() != 1
                or tensor.device.index != self.device
                or len(self._copies) >= _MOST
                or not self._can_record()
            ):
                return False
            room = self._room(tensor.dtype)
            value = room.pop()
            value.copy_(tensor.detach().reshape(()), non_blocking=True)
            self._copies.append((self._recorded(), value, room, tell))
            return True
        except Exception as problem:
            self._break(problem)
            return False

    def _recorded(self) -> Any:
        """Record an event now, and return the event.

        If torch gets the stream as an argument, recording takes half as long.
        """
        event = self._free.pop() if self._free else self._cuda.Event(enable_timing=True)
        event.record(self._cuda.current_stream(self.device))
        return event

    def land(self) -> None:
        """Mark the results that have landed."""
        if not self._lock.acquire(False):
            return
        try:
            if self._can_record():
                self._land_copies()
                self._land_times()
                self._tell_held()
        except Exception as problem:
            self._break(problem)
        finally:
            self._lock.release()

    def _land_copies(self) -> None:
        copies = self._copies
        while copies and copies[0][0].query():
            event, value, room, tell = copies.popleft()
            number = value.item()
            room.append(value)
            self._free.append(event)
            if isinstance(number, (int, float)):
                tell(float(number))

    def _land_times(self) -> None:
        timed = self._timed
        while timed and timed[0][1].query():
            began, ended, step_before, key = timed.popleft()
            since_ns = -1 if step_before is None else round(1e6 * step_before.elapsed_time(ended))
            self._watcher.mark(layout.WORKED, key, since_ns, began.elapsed_time(ended))
            self._free.append(began)
            if step_before is not None:
                self._free.append(step_before)

    def _tell_held(self) -> None:
        now_ns = time.monotonic_ns()
        if now_ns - self._held_at < _HELD_NS:
            return
        self._held_at = now_ns
        self._uuid = self._uuid or self._watcher.name(f"{uuid_of(self._cuda, self.device)}\nGPU")
        stats = self._cuda.memory_stats_as_nested_dict(self.device)
        given, reserved = (
            stats.get(f"{name}_bytes", {}).get("all", {}) for name in ("allocated", "reserved")
        )
        held = given.get("current", 0), reserved.get("current", 0), float(given.get("peak", 0))
        self._watcher.mark(layout.HELD, *held, self.device, self._uuid)

    def _can_record(self) -> bool:
        if self._is_broken or self._cuda.is_current_stream_capturing():
            return False
        is_here: bool = self._cuda.current_device() == self.device
        return is_here

    def _room(self, dtype: Any) -> list[Any]:
        """Return the pinned values that are free; the first call for a dtype allocates them."""
        if dtype not in self._rooms:
            self._rooms[dtype] = list(
                self._watcher.torch.empty(_MOST, dtype=dtype, pin_memory=True).unbind()
            )
        return self._rooms[dtype]

    def _break(self, problem: BaseException) -> None:
        """Stop measuring on a GPU on which a call failed: the script will see that by itself."""
        self._is_broken = True
        self._watcher.fail(problem)


def uuid_of(cuda: Any, device: int) -> str:
    """Return the UUID of a GPU from torch; empty if torch does not know it.

    It is the UUID that NVML reports, without its beginning.
    """
    return str(getattr(cuda.get_device_properties(device), "uuid", ""))
