"""Meters of memory and operators that give the same exact numbers on every machine, and the GPU's own where there is one.

`Memory` watches a `with` block at the level of the dispatcher: every tensor storage that is born and dies (rounded to 512
bytes, as the CUDA allocator does), every storage that is saved for backward, every operator called. A storage that first
shows up as an argument was there before the block: a view of it, such as the transpose of a weight, is no new memory.
"""

import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tuilab.lab import device as devices
from tuilab.lab.given import checked, told
from tuilab.lab.recorder import Recorder
from tuilab.record import events

_GRAIN = 512
_OF_CUDA = ("cuda_before_bytes", "cuda_peak_bytes", "cuda_reserved_bytes", "cuda_requested_bytes")


class Memory:
    """A `with` block whose memory and operators are counted; see `Lab.memory`.

    live_bytes           of storages born in the block that live now
    peak_bytes           the most that lived at once
    saved_bytes          of distinct storages that autograd kept for backward, parameters not counted
    operators            dispatcher calls
    cuda_before_bytes    what CUDA's allocator had given out when the block began
    cuda_peak_bytes      what it had given out at most, that included
    cuda_reserved_bytes  what it held at most, for itself as well
    cuda_requested_bytes what it was asked for at most: the peak without what blocks are larger than that

    The last four are those of one GPU: `device`, or else the current one. They are None where nothing lay on it, and the very
    last where the allocator does not count it (only torch's own does).
    """

    def __init__(
        self,
        lab: Recorder,
        name: str,
        arm: str,
        model: torch.nn.Module | None,
        timeline: bool,
        device: torch.device | None = None,
    ) -> None:
        self._lab = lab
        self._arm = arm
        self._timeline = timeline
        self._known: set[int] = set()
        self._weights: set[int] = set()
        self._saved: set[int] = set()
        self._mode = _MeterBesideDynamo(self) if "torch._dynamo" in sys.modules else _DispatchMeter(self)
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._save, lambda tensor: tensor)
        self._changes = 0
        self.live_bytes = self.peak_bytes = self.saved_bytes = self.operators = 0
        self.cuda_before_bytes: int | None = None
        self.cuda_peak_bytes: int | None = None
        self.cuda_reserved_bytes: int | None = None
        self.cuda_requested_bytes: int | None = None
        self._device = device
        if not isinstance(model, torch.nn.Module | None):
            raise TypeError(f"model takes a torch.nn.Module, not {told(model)}")
        if not isinstance(timeline, bool):
            raise TypeError(f"timeline takes True or False, not {told(timeline)}")
        self._event = checked(events.MemoryMeasured(name=name, values=self.values(), arm=arm))
        if model is not None:
            self.greet([*model.parameters(), *model.buffers()])

    def __enter__(self) -> "Memory":
        device = devices.in_use(self._device)
        device.wait()
        device.reset_peak()
        held = device.held()
        self._before = held.allocated if held else 0
        self._hooks.__enter__()
        self._mode.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._mode.__exit__(*problem)
        self._hooks.__exit__(*problem)
        self._timeline = False
        if problem[0] is None:  # else to ask a GPU that has failed would tell of that, and hide what failed first
            self._ask(devices.in_use(self._device))
            self._event.values = self.values()
            self._lab.record(self._event)

    def values(self) -> dict[str, float]:
        """Return the counts so far."""
        found = {name: getattr(self, name) for name in ("peak_bytes", "live_bytes", "saved_bytes", "operators", *_OF_CUDA)}
        return {name: float(value) for name, value in found.items() if value is not None}

    def reset_peak(self) -> None:
        """Begin the peak anew from what lives now."""
        self.peak_bytes = self.live_bytes

    def _ask(self, device: devices.Device) -> None:
        device.wait()
        held = device.held()
        if held and held.allocated_peak:
            self.cuda_before_bytes, self.cuda_peak_bytes = self._before, held.allocated_peak
            self.cuda_reserved_bytes, self.cuda_requested_bytes = held.reserved_peak, held.requested_peak or None

    def greet(self, values: Any) -> None:
        """Know the storages of tensors that were there before the block, and which of them are weights."""
        for tensor, storage in _storages(values):
            self._meet(storage, 0)
            if isinstance(tensor, torch.nn.Parameter):
                self._weights.add(storage._cdata)

    def watch(self, values: Any) -> None:
        """Count the storages of tensors from their birth to their death."""
        for _, storage in _storages(values):
            self._meet(storage, -(-storage.nbytes() // _GRAIN) * _GRAIN)

    def _meet(self, storage: torch.UntypedStorage, size: int) -> None:
        key = storage._cdata
        if key not in self._known:
            self._known.add(key)
            self._change(size)
            weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        """Forget a storage that died: its key is an address, which the next storage may get."""
        for keys in (self._known, self._weights, self._saved):
            keys.discard(key)
        self._change(-size)

    def _change(self, size: int) -> None:
        self.live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        if self._timeline and size:
            self._changes += 1
            self._lab.log(self._changes, arm=self._arm, live_bytes=self.live_bytes)

    def _save(self, tensor: torch.Tensor) -> torch.Tensor:
        for _, storage in _storages(tensor):
            self._meet(storage, 0)
            key = storage._cdata
            if not (isinstance(tensor, torch.nn.Parameter) or key in self._weights or key in self._saved):
                self._saved.add(key)
                self.saved_bytes += storage.nbytes()
        # An alias, because the tensor itself would keep its own graph alive until the garbage collector finds the cycle.
        self._mode.is_counting = False
        alias = tensor.detach()
        self._mode.is_counting = True
        return alias


class _DispatchMeter(TorchDispatchMode):
    """Sees every operator below autograd."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory
        self.is_counting = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Without this, torch wraps the method below in torch._dynamo.disable, and the first operator imports Dynamo: 2 s."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.is_counting:
            return func(*args, **(kwargs or {}))
        if func is not torch.ops.aten.lift_fresh.default:  # its argument is the tensor that torch.tensor just made
            self._memory.greet((args, kwargs))
        result = func(*args, **(kwargs or {}))
        self._memory.operators += 1
        self._memory.watch(result)
        return result


class _MeterBesideDynamo(_DispatchMeter):
    """The same for a process that has Dynamo loaded, which must not compile the meter itself."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_dispatch__(func, types, args, kwargs)


def _storages(values: Any) -> Iterator[tuple[torch.Tensor, torch.UntypedStorage]]:
    """Yield the tensors in nested values that have a storage with memory behind it."""
    for leaf in tree_leaves(values):
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and leaf.device.type != "meta":
            yield leaf, leaf.untyped_storage()
