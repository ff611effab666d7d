"""Meters of memory and operators that give the same exact numbers on every machine, and the GPU's own where there is one.

`Memory` watches a `with` block at the level of the dispatcher: every tensor storage that is born and dies (rounded to 512
bytes, as the CUDA allocator does), every storage that is saved for backward, every operator called.
"""

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tuilab import events

if TYPE_CHECKING:
    from tuilab.lab import Lab

_GRAIN = 512


class Memory:
    """A `with` block whose memory and operators are counted; see `Lab.memory`.

        live_bytes       of storages born in the block that live now
        peak_bytes       the most that lived at once
        saved_bytes      of distinct storages that autograd kept for backward, parameters not counted
        operators        dispatcher calls
        cuda_peak_bytes  what the CUDA allocator saw at most; None without CUDA
    """

    def __init__(self, lab: "Lab", name: str, arm: str, model: torch.nn.Module | None, timeline: bool) -> None:
        self._lab = lab
        self._name = name
        self._arm = arm
        self._timeline = timeline
        self._known = _storages_of(model)
        self._mode = _DispatchMeter(self)
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._save, lambda tensor: tensor)
        self._saved: dict[int, int] = {}
        self._births = 0
        self.live_bytes = self.peak_bytes = self.saved_bytes = self.operators = 0
        self.cuda_peak_bytes: int | None = None

    def __enter__(self) -> "Memory":
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        self._hooks.__enter__()
        self._mode.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._mode.__exit__(*problem)
        self._hooks.__exit__(*problem)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            self.cuda_peak_bytes = torch.cuda.max_memory_allocated()
        if problem[0] is None:
            self._lab.record(events.MemoryMeasured(name=self._name, values=self.values(), arm=self._arm))

    def values(self) -> dict[str, float]:
        """Return the counts so far."""
        found = {name: getattr(self, name) for name in ("peak_bytes", "live_bytes", "saved_bytes", "operators", "cuda_peak_bytes")}
        return {name: float(value) for name, value in found.items() if value is not None}

    def reset_peak(self) -> None:
        """Begin the peak anew from what lives now."""
        self.peak_bytes = self.live_bytes

    def watch(self, tensor: torch.Tensor) -> None:
        """Count a storage from its birth to its death."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known or storage.device.type == "meta":
            return
        self._known.add(key)
        size = -(-storage.nbytes() // _GRAIN) * _GRAIN
        self._change(size)
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._known.discard(key)
        self._change(-size)

    def _change(self, size: int) -> None:
        self.live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        if self._timeline:
            self._births += 1
            self._lab.log(self._births, arm=self._arm, live_mb=self.live_bytes / 1e6)

    def _save(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if not isinstance(tensor, torch.nn.Parameter) and storage._cdata not in self._saved:
            self._saved[storage._cdata] = storage.nbytes()
            self.saved_bytes += storage.nbytes()
        return tensor


class _DispatchMeter(TorchDispatchMode):
    """Sees every operator below autograd."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._memory.operators += 1
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._memory.watch(leaf)
        return result


def _storages_of(model: torch.nn.Module | None) -> set[int]:
    """Return the storages of a model's weights: views of them must not count as new memory."""
    if model is None:
        return set()
    return {tensor.untyped_storage()._cdata for tensor in [*model.parameters(), *model.buffers()]}
