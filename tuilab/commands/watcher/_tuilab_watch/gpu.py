"""What is measured on a GPU: it lands later, in pinned memory or in events, and nobody ever waits for it.

Nothing of this happens while a graph is captured, and nothing makes a context where the script has none. Of several GPUs the
first that a process uses is watched alone.
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

_MOST = 64  # of each kind that have not landed; more are not measured
_HELD_NS = 500_000_000  # between two looks at what torch holds


class GpuMarks:
    """The events and copies that have not landed yet."""

    def __init__(self, watcher: Any, device: int) -> None:
        self.device = device
        self._watcher = watcher
        self._cuda: Any = sys.modules.get("torch.cuda")
        self._is_broken = self._cuda is None or not self._cuda.is_initialized()
        self._free: list[Any] = []  # events
        self._timed: deque[tuple[Any, Any, Any, int]] = (
            deque()
        )  # begin, end, end of the one before, key
        self._before: Any = None
        self._copies: deque[tuple[Any, Any, list[Any], Callable[[float], None]]] = (
            deque()
        )  # event, value, its room, who hears
        self._rooms: dict[Any, list[Any]] = {}  # pinned numbers that are free, by dtype
        self._held_at = 0
        self._uuid = 0
        self._lock = threading.Lock()
        atexit.register(self.land)

    def event(self) -> Any:
        """Record an event in the current stream; None where that is not possible, or too many have not landed."""
        try:
            if not self._can_record() or len(self._timed) >= _MOST:
                return None
            return self._recorded()
        except Exception as problem:
            return self._break(problem)

    def times(self, began: Any, key: int) -> bool:
        """Say whether it will be told how long took what began with an event and ends here; `key` is the time of its mark."""
        ended = None if began is None else self.event()
        if ended is None:
            self._before = None  # how long it is since then is not known
            return False
        self._timed.append((began, ended, self._before, key))
        self._before = ended
        return True

    def lands(self, tensor: Any, key: int) -> int:
        """Have a value told by a mark of its own; return the flag that says so, if it will be."""
        tell = partial(self._watcher.mark, layout.LANDED, key, 0)
        return layout.LATE if self.copy(tensor, tell) else 0

    def copy(self, tensor: Any, tell: Callable[[float], None]) -> bool:
        """Copy one number to the host, in the order of the stream: what overwrites it there comes after."""
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
        """Return an event that was recorded now; told the stream, torch takes half as long to do it."""
        event = self._free.pop() if self._free else self._cuda.Event(enable_timing=True)
        event.record(self._cuda.current_stream(self.device))
        return event

    def land(self) -> None:
        """Tell what has come to be known meanwhile."""
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
        """Return the numbers of pinned memory that are free; the first call of a dtype allocates it."""
        if dtype not in self._rooms:
            self._rooms[dtype] = list(
                self._watcher.torch.empty(_MOST, dtype=dtype, pin_memory=True).unbind()
            )
        return self._rooms[dtype]

    def _break(self, problem: BaseException) -> None:
        """Leave a GPU alone on which a call failed: the script will hear of that by itself."""
        self._is_broken = True
        self._watcher.fail(problem)


def uuid_of(cuda: Any, device: int) -> str:
    """Return what torch calls a GPU, which is what NVML calls it but for its beginning; nothing where it does not say."""
    return str(getattr(cuda.get_device_properties(device), "uuid", ""))
