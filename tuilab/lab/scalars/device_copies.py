"""Where the numbers of a GPU arrive: memory of the host that it writes to by itself, while the scenario goes on."""

import ctypes
from typing import NamedTuple

import torch

from tuilab.lab.device.cuda import Cuda, Event

_BATCH = 256  # slots that are made at a time


class _Kind(NamedTuple):
    """How the host reads numbers of a dtype: their bits, their value, and the bits of a NaN that no computation yields."""

    bits: "type[ctypes.c_uint32 | ctypes.c_uint64]"
    value: "type[ctypes.c_float | ctypes.c_double]"
    empty: int


_KINDS = {  # that a GPU copies as they are; of others it makes float64 first, which is a kernel more
    torch.float32: _Kind(ctypes.c_uint32, ctypes.c_float, 0xFFF7_5A5A),
    torch.float64: _Kind(ctypes.c_uint64, ctypes.c_double, 0xFFF7_5A5A_C3C3_1D1D),
}


class PinnedSlot:
    """One number, which says whether it was written to: after an error a GPU does not tell any more what it has done."""

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
    """Numbers that are on their way, and the event after them in their stream."""

    slots: dict[str, PinnedSlot]
    event: Event


class DeviceCopies:
    """The slots and events of one GPU, used again and again; there are as many as it is ever behind."""

    def __init__(self, gpu: Cuda) -> None:
        self.gpu = gpu
        self.trouble = ""  # the error after which the GPU answers nothing any more
        self._slots: dict[torch.dtype, list[PinnedSlot]] = {dtype: [] for dtype in _KINDS}
        self._events: list[Event] = []

    def send(self, values: dict[str, torch.Tensor]) -> CopyInFlight:
        """Have values copied as they will be in the current stream after all that it was told so far."""
        slots = {}
        for name, value in values.items():
            slots[name] = slot = self._take_slot(value.dtype)
            slot.empty()
            self._copy(name, value, slot)
        return CopyInFlight(slots, self.gpu.flag(self._events.pop() if self._events else None))

    def is_capturing(self) -> bool:
        """Say whether the GPU records a graph, which a question for an event would spoil."""
        try:
            return not self.trouble and self.gpu.is_capturing()
        except RuntimeError as problem:
            return self._note(problem)

    def has_landed(self, flight: CopyInFlight) -> bool:
        """Say whether all is there, without waiting."""
        try:
            if not self.trouble and flight.event.query():
                return True
        except RuntimeError as problem:
            self._note(problem)
        return bool(self.trouble) and all(slot.is_written for slot in flight.slots.values())

    def release(self, flight: CopyInFlight) -> None:
        """Use the slots again of what has landed; a GPU that failed may still write to them."""
        if not self.trouble:
            for slot in flight.slots.values():
                self._slots[slot.number.dtype].append(slot)
            self._events.append(flight.event)

    def _note(self, problem: RuntimeError) -> bool:
        """Ask no more, and leave the error to the scenario's own next call."""
        self.trouble = str(problem).partition("\n")[0] or type(problem).__name__
        return False

    def _take_slot(self, dtype: torch.dtype) -> PinnedSlot:
        dtype = dtype if dtype in _KINDS else torch.float64
        slots = self._slots[dtype]
        if not slots:
            slots += map(PinnedSlot, self.gpu.numbers(_BATCH, dtype))
        return slots.pop()

    def _copy(self, name: str, value: torch.Tensor, slot: PinnedSlot) -> None:
        try:
            self.gpu.send(value.reshape(()) if value.dim() else value, slot.number)
        except Exception as problem:
            if type(value) in (torch.Tensor, torch.nn.Parameter):
                raise
            kind = type(value).__name__
            raise TypeError(
                f"{name} takes a plain tensor, not a {kind}; pass full_tensor() of a DTensor"
            ) from problem
