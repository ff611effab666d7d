"""Copy numbers of a GPU to pinned memory, without waiting for them.

Pinned memory is memory of the host that the GPU can write to. A slot is room for one number there.
"""

import ctypes
from typing import NamedTuple

import torch

from tuilab.lab.device.cuda import Cuda, Event

_BATCH = 256  # slots that are allocated at a time


class _Kind(NamedTuple):
    """How the host reads a dtype: its bits, its value, and a NaN that no computation produces."""

    bits: "type[ctypes.c_uint32 | ctypes.c_uint64]"
    value: "type[ctypes.c_float | ctypes.c_double]"
    empty: int


_KINDS = {  # other dtypes need one more kernel, which converts them to float64
    torch.float32: _Kind(ctypes.c_uint32, ctypes.c_float, 0xFFF7_5A5A),
    torch.float64: _Kind(ctypes.c_uint64, ctypes.c_double, 0xFFF7_5A5A_C3C3_1D1D),
}


class PinnedSlot:
    """One number in pinned memory, which knows whether the GPU has written it.

    After an error, a GPU does not report any more which copies are done.
    """

    __slots__ = ("_bits", "_empty", "_float", "number")

    def __init__(self, number: torch.Tensor) -> None:
        bits, value, self._empty = _KINDS[number.dtype]
        self.number = number
        self._bits = bits.from_address(number.data_ptr())
        self._float = value.from_address(number.data_ptr())

    def empty(self) -> None:
        self._bits.value = self._empty

    @property
    def is_written(self) -> bool:
        return self._bits.value != self._empty

    @property
    def value(self) -> float:
        return self._float.value


class CopyInFlight(NamedTuple):
    """Copies that are not done yet, and the event after them in their stream."""

    slots: dict[str, PinnedSlot]
    event: Event


class DeviceCopies:
    """The slots and events of one GPU, which are used again when their copies are done."""

    def __init__(self, gpu: Cuda) -> None:
        self.gpu = gpu
        self.trouble = ""  # the error after which the GPU answers no question
        self._slots: dict[torch.dtype, list[PinnedSlot]] = {dtype: [] for dtype in _KINDS}
        self._events: list[Event] = []

    def send(self, values: dict[str, torch.Tensor]) -> CopyInFlight:
        """Queue the copies of values on the current stream, after the work that is queued there."""
        slots = {}
        for name, value in values.items():
            slot = self._take_slot(value.dtype)
            slots[name] = slot
            slot.empty()
            self._copy(name, value, slot)
        used_event = self._events.pop() if self._events else None
        return CopyInFlight(slots, self.gpu.flag(used_event))

    def is_capturing(self) -> bool:
        """Say whether the GPU captures a graph, which a query of an event would break.

        False after an error, which is noted in `trouble`.
        """
        try:
            return not self.trouble and self.gpu.is_capturing()
        except RuntimeError as problem:
            return self._note(problem)

    def has_landed(self, flight: CopyInFlight) -> bool:
        """Say whether all copies are done, without waiting; an error is noted in `trouble`.

        After an error, the content of the slots shows which copies are done.
        """
        try:
            if not self.trouble and flight.event.query():
                return True
        except RuntimeError as problem:
            self._note(problem)
        return bool(self.trouble) and all(slot.is_written for slot in flight.slots.values())

    def release(self, flight: CopyInFlight) -> None:
        """Use slots and event again after their copies are done, unless the GPU has failed."""
        if not self.trouble:
            for slot in flight.slots.values():
                self._slots[slot.number.dtype].append(slot)
            self._events.append(flight.event)

    def _note(self, problem: RuntimeError) -> bool:
        """Note an error, and return False: the GPU is not asked any more.

        The next call of the scenario will raise the error.
        """
        self.trouble = str(problem).partition("\n")[0] or type(problem).__name__
        return False

    def _take_slot(self, dtype: torch.dtype) -> PinnedSlot:
        """Return an unused slot for a dtype; slots are allocated in batches.

        A dtype that the host cannot read gets a slot for float64.
        """
        if dtype not in _KINDS:
            dtype = torch.float64
        slots = self._slots[dtype]
        if not slots:
            slots += [PinnedSlot(number) for number in self.gpu.numbers(_BATCH, dtype)]
        return slots.pop()

    def _copy(self, name: str, value: torch.Tensor, slot: PinnedSlot) -> None:
        """Queue the copy of a value into a slot; raise TypeError for a tensor of another class."""
        try:
            self.gpu.send(value.reshape(()) if value.dim() else value, slot.number)
        except Exception as problem:
            if type(value) in (torch.Tensor, torch.nn.Parameter):
                raise
            kind = type(value).__name__
            raise TypeError(
                f"{name} takes a plain tensor, not a {kind}; pass full_tensor() of a DTensor"
            ) from problem
