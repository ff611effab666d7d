"""Records that are held back until a GPU has computed their values, so that no step waits.

Each value is copied on the current stream of its GPU, so later work does not change it. The time of
a record is that of its `log`. Records are written in the order of their `log`.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tuilab.lab.device.devices import gpu
from tuilab.lab.scalars.device_copies import CopyInFlight, DeviceCopies, PinnedSlot
from tuilab.record.events import Logged
from tuilab.record.held_back_records import UnwrittenCount

_FEW = 2  # records that one call writes at most: more than it adds, so the queue shrinks
_POLL_S = 0.0005  # between two looks whether values have arrived


class _Held(NamedTuple):
    step: int
    arm: str
    at: int
    values: dict[str, float | PinnedSlot]
    flights: list[tuple[DeviceCopies, CopyInFlight]]
    x: float | None


class Lost(NamedTuple):
    """The number of records whose values did not arrive, and why."""

    records: int
    why: str


class Pending:
    """The records that are held back, oldest first; safe for threads and signal handlers."""

    def __init__(
        self,
        run_dir: Path,
        writer: str,
        write: Callable[[Logged], object],
        now_ns: Callable[[], int],
    ) -> None:
        self.held: deque[_Held] = deque()
        self._names: set[str] = set()  # of records since the queue was last empty
        # Threads that may query events: another thread may capture a graph, which a query would
        # break.
        self._askers: set[int] = set()
        self._copies: dict[int | None, DeviceCopies] = {}
        self._place = run_dir, writer
        self._unwritten: UnwrittenCount | None = None
        self._write = write
        self._now_ns = now_ns
        self._lock = threading.RLock()
        self._is_writing = False

    def has_any(self, names: Iterable[str]) -> bool:
        """Say whether a record with one of these names is held back."""
        return not self._names.isdisjoint(names)

    def add(self, step: int, arm: str, values: dict[str, Any], x: float | None = None) -> None:
        """Hold back a record of floats and GPU tensors, with one batch of copies for each GPU.

        Older records that have arrived are written. Raises TypeError for a tensor that is no
        number, ValueError while its GPU captures a graph.
        """
        by_gpu: dict[int | None, dict[str, torch.Tensor]] = {}
        for name, value in values.items():
            if type(value) is not float:
                _refuse(name, value)
                by_gpu.setdefault(value.device.index, {})[name] = value
        with self._lock:
            logged_ns = self._now_ns()  # before slots are allocated, which is slow
            for index, tensors in by_gpu.items():
                if gpu(index).is_capturing():
                    raise ValueError(
                        f"{min(tensors)} cannot be logged while its GPU records a graph; log it"
                        " after a replay"
                    )
            # Whether all GPUs in use were just found to capture no graph.
            is_not_capturing = by_gpu.keys() == self._copies.keys()
            flights = []
            values_or_slots: dict[str, float | PinnedSlot] = dict(values)
            for index, tensors in by_gpu.items():
                copies = self._copies_of(index)
                flight = copies.send(tensors)
                flights.append((copies, flight))
                values_or_slots.update(flight.slots)
            if flights:
                self._askers.add(threading.get_ident())
            self._names.update(values)
            self.held.append(_Held(step, arm, logged_ns, values_or_slots, flights, x))
            self._count(1)
            self.flush(_FEW, is_not_capturing=is_not_capturing)
            self._tell()

    def flush(self, most: int | None = None, *, is_not_capturing: bool = False) -> int:
        """Write the oldest records that have arrived, without waiting; return their number.

        At most `most` are written. Nothing is written by a thread that never added a value of a
        GPU, or while a GPU captures a graph. `is_not_capturing` skips that check, if the caller has
        just made it.
        """
        written = 0
        with self._lock:
            if self._is_writing or threading.get_ident() not in self._askers:
                return 0
            if not is_not_capturing and self._capturing():
                return 0
            self._is_writing = True
            try:
                while self.held and written != most and _has_landed(self.held[0]):
                    self._write_first()
                    written += 1
                    if most is None or most > _FEW:
                        self._tell()
            finally:
                self._is_writing = False
                self._tell()
        return written

    def bring_over(self, patience_s: float) -> Lost:
        """Wait for all held records while some arrive; then write what there is of the rest.

        A GPU that brings nothing for `patience_s` is given up. Returns how many records lack
        values, and why.
        """
        lost = Lost(0, "")
        count = len(self.held)  # not for records that another thread adds meanwhile
        self._askers.add(threading.get_ident())
        deadline = time.monotonic() + patience_s
        while count > 0 and self.held:
            written = self.flush(count)
            if written:
                count -= written
                deadline = time.monotonic() + patience_s
                continue
            why = self._write_rest()
            if why:
                count -= 1
                lost = Lost(lost.records + 1, lost.why or why)
            elif time.monotonic() > deadline:
                self._give_up(patience_s)
                deadline = time.monotonic() + patience_s
            else:
                time.sleep(_POLL_S)
        return lost

    def save(self, patience_s: float) -> bool:
        """Call `bring_over` in a signal handler; return False if it interrupted a write.

        The caller then tries again: the interrupted write has to end first.
        """
        if not self._lock.acquire(timeout=_POLL_S):
            return False
        try:
            is_free = not self._is_writing
            if is_free:
                self.bring_over(patience_s)
            return is_free
        finally:
            self._lock.release()

    def _capturing(self) -> list[DeviceCopies]:
        """Return the copies of GPUs that capture a graph, which a query of an event would break."""
        return [copies for copies in self._copies.values() if copies.is_capturing()]

    def _give_up(self, patience_s: float) -> None:
        """Give up the GPUs for which the oldest record waits, and those that capture a graph."""
        with self._lock:
            for copies in self._capturing():
                copies.trouble = f"a GPU recorded a graph {patience_s:g} s later"
            if not self.held:
                return
            for copies, flight in self.held[0].flights:
                if not copies.has_landed(flight) and not copies.trouble:
                    copies.trouble = f"a GPU had not computed them {patience_s:g} s later"

    def _write_rest(self) -> str:
        """If a GPU of the oldest record has failed, write the other values; return the error."""
        with self._lock:
            troubles = []
            if self.held:
                troubles = [copies.trouble for copies, _ in self.held[0].flights if copies.trouble]
            if not troubles:
                return ""
            self._is_writing = True
            try:
                self._write_first(is_whole=False)
            finally:
                self._is_writing = False
            return troubles[0]

    def _write_first(self, *, is_whole: bool = True) -> None:
        """Write the oldest record; unless it `is_whole`, without values that have not arrived."""
        held = self.held[0]
        values = {}
        for name, value in held.values.items():
            if not isinstance(value, PinnedSlot):
                values[name] = value
            elif is_whole or value.is_written:
                values[name] = value.value
        try:
            if values:
                self._write(Logged(s=held.step, v=values, a=held.arm, at=held.at, x=held.x))
        finally:
            self.held.popleft()  # only now, so that records of other threads come after it
        if is_whole:
            for copies, flight in held.flights:
                copies.release(flight)
            self._count(-1)
        if not self.held:
            self._names.clear()

    def _copies_of(self, index: int | None) -> DeviceCopies:
        """Return the slots and events of a GPU.

        The first call creates the file that counts held records, and forgets them in forked
        children.
        """
        if self._unwritten is None:
            self._unwritten = UnwrittenCount(*self._place)
            os.register_at_fork(after_in_child=self._disown)
        if index not in self._copies:
            self._copies[index] = DeviceCopies(gpu(index))
        return self._copies[index]

    def _count(self, change: int) -> None:
        if self._unwritten:
            self._unwritten.count += change

    def _tell(self) -> None:
        """Store the count of held records, so that it survives a kill."""
        if self._unwritten:
            self._unwritten.tell()

    def _disown(self) -> None:
        """Forget the records of the parent, in a forked child: the parent writes them."""
        self._lock = threading.RLock()
        self._is_writing = False
        self.held.clear()
        if self._unwritten:
            self._unwritten.disown()


def _has_landed(held: _Held) -> bool:
    return all(copies.has_landed(flight) for copies, flight in held.flights)


def _refuse(name: str, value: torch.Tensor) -> None:
    """Raise TypeError if a tensor is no single real number."""
    if value.numel() != 1 or value.is_complex():
        raise TypeError(
            f"{name} takes a number, not a tensor of {tuple(value.shape)} {value.dtype} on"
            f" {value.device}"
        )
