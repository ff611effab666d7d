"""What was logged and is not written yet, because a GPU has still to compute it: no step waits for its own numbers.

Each value is copied on the current stream of its GPU, so that it is what the stream will have made of it by then, whatever
comes later. The time of a record is that of its `log`. Records are written in that order, as far as they have arrived.
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
from tuilab.record.held_back_records import Unwritten

_FEW = 2  # more than come in with one call, so that nothing piles up and no call writes much
_LOOK_S = 0.0005


class _Held(NamedTuple):
    step: int
    arm: str
    at: int
    values: dict[str, float | PinnedSlot]
    flights: list[tuple[DeviceCopies, CopyInFlight]]
    x: float | None


class Lost(NamedTuple):
    """Records whose values did not come, and why."""

    records: int
    why: str


class Pending:
    """Records in the order in which they were logged; safe for threads and signal handlers."""

    def __init__(
        self,
        run_dir: Path,
        writer: str,
        write: Callable[[Logged], object],
        now_ns: Callable[[], int],
    ) -> None:
        self.held: deque[_Held] = deque()
        self._names: set[str] = set()  # that are held, or were since nothing was
        self._askers: set[int] = (
            set()
        )  # threads that ask the GPUs: another one may record a graph, which a question spoils
        self._landings: dict[int | None, DeviceCopies] = {}
        self._place = run_dir, writer
        self._unwritten: Unwritten | None = None
        self._write = write
        self._now_ns = now_ns
        self._lock = threading.RLock()
        self._is_writing = False

    def has_any(self, names: Iterable[str]) -> bool:
        """Say whether one of the names is held: what is logged under it later is to be written later."""
        return not self._names.isdisjoint(names)

    def add(self, step: int, arm: str, values: dict[str, Any], x: float | None = None) -> None:
        """Hold a record back: floats, and tensors on GPUs, of which each gets one order and one event."""
        by_gpu: dict[int | None, dict[str, torch.Tensor]] = {}
        for name, value in values.items():
            if type(value) is not float:
                _refuse(name, value)
                by_gpu.setdefault(value.device.index, {})[name] = value
        with self._lock:
            logged_ns = self._now_ns()  # before slots are made, which takes long
            for index, tensors in by_gpu.items():
                if gpu(index).is_capturing():
                    raise ValueError(
                        f"{min(tensors)} cannot be logged while its GPU records a graph; log it"
                        " after a replay"
                    )
            is_sure = by_gpu.keys() == self._landings.keys()  # that none of them records a graph
            flights = [
                (landing := self._landing(index), landing.send(tensors))
                for index, tensors in by_gpu.items()
            ]
            if flights:
                self._askers.add(threading.get_ident())
            slots = {name: slot for _, flight in flights for name, slot in flight.slots.items()}
            self._names.update(values)
            self.held.append(_Held(step, arm, logged_ns, {**values, **slots}, flights, x))
            self._count(1)
            self.flush(_FEW, is_sure=is_sure)
            self._tell()

    def flush(self, most: int | None = None, *, is_sure: bool = False) -> int:
        """Write what has arrived, the oldest first, and return how much; nothing waits.

        Who `is_sure` has asked just now whether a graph is recorded.
        """
        written = 0
        with self._lock:
            if (
                self._is_writing
                or threading.get_ident() not in self._askers
                or (not is_sure and self._capturing())
            ):
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
        """Wait for what is on its way by now, as long as some of it comes now and then; of the rest write what is there."""
        lost = Lost(0, "")
        count = len(self.held)  # a thread that goes on logging is not waited for
        self._askers.add(threading.get_ident())
        deadline = time.monotonic() + patience_s
        while count > 0 and self.held:
            if written := self.flush(count):
                count, deadline = count - written, time.monotonic() + patience_s
            elif why := self._write_rest():
                count, lost = count - 1, Lost(lost.records + 1, lost.why or why)
            elif time.monotonic() > deadline:
                self._give_up(patience_s)
                deadline = time.monotonic() + patience_s
            else:
                time.sleep(_LOOK_S)
        return lost

    def save(self, patience_s: float) -> bool:
        """Do the same in a signal handler, which may have interrupted this; False where it has."""
        if not self._lock.acquire(timeout=_LOOK_S):
            return False
        try:
            is_free = not self._is_writing
            if is_free:
                self.bring_over(patience_s)
            return is_free
        finally:
            self._lock.release()

    def _capturing(self) -> list[DeviceCopies]:
        """Return where a graph is recorded, which a question for an event would spoil."""
        return [landing for landing in self._landings.values() if landing.is_capturing()]

    def _give_up(self, patience_s: float) -> None:
        """Ask the GPUs no more that what is held first waits for; one that still records a graph is not asked either."""
        with self._lock:
            for landing in self._capturing():
                landing.trouble = f"a GPU recorded a graph {patience_s:g} s later"
            for landing, flight in self.held[0].flights if self.held else ():
                if not landing.has_landed(flight):
                    landing.trouble = (
                        landing.trouble or f"a GPU had not computed them {patience_s:g} s later"
                    )

    def _write_rest(self) -> str:
        """Write what there is of the first record, if a GPU tells nothing more of it, and return why."""
        with self._lock:
            flights = self.held[0].flights if self.held else ()
            why = next((landing.trouble for landing, _ in flights if landing.trouble), "")
            if why:
                self._is_writing = True
                try:
                    self._write_first(is_whole=False)
                finally:
                    self._is_writing = False
            return why

    def _write_first(self, *, is_whole: bool = True) -> None:
        """Write what is held first; the slots of what has not come are not used again."""
        held = self.held[0]
        values = {
            name: value.value if isinstance(value, PinnedSlot) else value
            for name, value in held.values.items()
            if is_whole or not isinstance(value, PinnedSlot) or value.is_written
        }
        try:
            if values:
                self._write(Logged(s=held.step, v=values, a=held.arm, at=held.at, x=held.x))
        finally:
            self.held.popleft()  # not before: what another thread logs under its names meanwhile is to stand behind it
        if is_whole:
            for landing, flight in held.flights:
                landing.release(flight)
            self._count(-1)
        if not self.held:
            self._names.clear()

    def _landing(self, index: int | None) -> DeviceCopies:
        if self._unwritten is None:
            self._unwritten = Unwritten(*self._place)
            os.register_at_fork(after_in_child=self._disown)
        if index not in self._landings:
            self._landings[index] = DeviceCopies(gpu(index))
        return self._landings[index]

    def _count(self, change: int) -> None:
        if self._unwritten:
            self._unwritten.count += change

    def _tell(self) -> None:
        """Have the count where a kill cannot take it away."""
        if self._unwritten:
            self._unwritten.tell()

    def _disown(self) -> None:
        """Forget what the parent of a fork holds."""
        self._lock = threading.RLock()
        self._is_writing = False
        self.held.clear()
        if self._unwritten:
            self._unwritten.disown()


def _has_landed(held: _Held) -> bool:
    return all(landing.has_landed(flight) for landing, flight in held.flights)


def _refuse(name: str, value: torch.Tensor) -> None:
    if value.numel() != 1 or value.is_complex():
        raise TypeError(
            f"{name} takes a number, not a tensor of {tuple(value.shape)} {value.dtype} on"
            f" {value.device}"
        )
