"""Counts at the level of the dispatcher: the same exact numbers on every machine.

Every tensor storage that is born and dies (rounded to 512 bytes, as the CUDA allocator does), every storage that is saved for
backward, every operator called. A storage that first shows up as an argument was there before: a view of it, such as the
transpose of a weight, is no new memory.
"""

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_GRAIN = 512

Seen = Callable[
    [Any, Any, Any, Any], object
]  # an operator, its arguments, those with names, and its result


class Meter:
    """What is counted between `__enter__` and `__exit__`; `seen` is told of every operator, `changed` of live bytes.

    live_bytes      of storages born here that live at this moment
    peak_bytes      the most that lived at once
    born_bytes      of all storages born here, as they were asked for
    saved_bytes     of distinct storages that autograd kept for backward, parameters not counted
    calls           of operators of the dispatcher, by name
    """

    def __init__(
        self, seen: Seen | None = None, changed: Callable[[], object] | None = None
    ) -> None:
        self._known: set[int] = set()
        self._weights: set[int] = set()
        self._saved: set[int] = set()
        self._mode = (
            _MeterBesideDynamo(self) if "torch._dynamo" in sys.modules else _DispatchMeter(self)
        )
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._save, lambda tensor: tensor)
        self._seen = seen
        self._changed = changed
        self.live_bytes = self.peak_bytes = self.born_bytes = self.saved_bytes = 0
        self.calls: Counter[str] = Counter()

    def __enter__(self) -> "Meter":
        self._hooks.__enter__()
        self._mode.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._mode.__exit__(*problem)
        self._hooks.__exit__(*problem)

    @property
    def operators(self) -> int:
        return self.calls.total()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing meanwhile."""
        was_counting, self._mode.is_counting = self._mode.is_counting, False
        try:
            yield
        finally:
            self._mode.is_counting = was_counting

    def greet(self, values: Any) -> None:
        """Know the storages of tensors that were there before, and which of them are weights."""
        for tensor, storage in _storages(values):
            self._meet(storage, is_born=False)
            if isinstance(tensor, torch.nn.Parameter):
                self._weights.add(storage._cdata)

    def count(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Count a call of an operator, and the storages of its result from their birth to their death."""
        self.calls[str(func.overloadpacket)] += 1
        for _, storage in _storages(result):
            self._meet(storage, is_born=True)
        if self._seen:
            self._seen(func, args, kwargs, result)

    def _meet(self, storage: torch.UntypedStorage, *, is_born: bool) -> None:
        key = storage._cdata
        if key not in self._known:
            self._known.add(key)
            nbytes = storage.nbytes() if is_born else 0
            self.born_bytes += nbytes
            size = -(-nbytes // _GRAIN) * _GRAIN
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
        if self._changed and size:
            self._changed()

    def _save(self, tensor: torch.Tensor) -> torch.Tensor:
        for _, storage in _storages(tensor):
            self._meet(storage, is_born=False)
            key = storage._cdata
            if not (
                isinstance(tensor, torch.nn.Parameter) or key in self._weights or key in self._saved
            ):
                self._saved.add(key)
                self.saved_bytes += storage.nbytes()
        # An alias, because the tensor itself would keep its own graph alive until the garbage collector finds the cycle.
        with self.paused():
            return tensor.detach()


class _DispatchMeter(TorchDispatchMode):
    """Sees every operator below autograd."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter
        self.is_counting = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Without this, torch wraps the method below in torch._dynamo.disable, and the first operator imports Dynamo: 2 s."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.is_counting:
            return func(*args, **(kwargs or {}))
        if (
            torch.is_inference_mode_enabled()
        ):  # where operators that are made of others arrive whole
            with self:
                if (result := func.decompose(*args, **(kwargs or {}))) is not NotImplemented:
                    return result
        if (
            func is not torch.ops.aten.lift_fresh.default
        ):  # its argument is the tensor that torch.tensor just made
            self._meter.greet((args, kwargs))
        result = func(*args, **(kwargs or {}))
        self._meter.count(func, args, kwargs or {}, result)
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
        if (
            isinstance(leaf, torch.Tensor)
            and leaf.layout is torch.strided
            and leaf.device.type != "meta"
        ):
            yield leaf, leaf.untyped_storage()
