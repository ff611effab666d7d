"""Count memory and operators at the dispatcher.

The numbers are exact and the same on every machine.

Counted are storages from birth to death (rounded to 512 bytes, as in the CUDA allocator), storages
that are saved for backward, and calls of operators. A storage that first appears as an argument
existed before: a view of it, such as the transpose of a weight, is no new memory.
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

_GRAIN = 512  # bytes

# Gets an operator, its positional arguments, its keyword arguments, and its result.
Seen = Callable[[Any, Any, Any, Any], object]


class Meter:
    """Counts in a `with` block.

    `seen` is called for each operator, `changed` when live bytes change.

    live_bytes      of storages that were created here and live now
    peak_bytes      the most live bytes at one time
    born_bytes      of all storages that were created here, as requested
    saved_bytes     of distinct storages that autograd saved for backward, without parameters
    calls           of operators of the dispatcher, by name
    """

    def __init__(
        self, seen: Seen | None = None, changed: Callable[[], object] | None = None
    ) -> None:
        self._known: set[int] = set()
        self._weights: set[int] = set()
        self._saved: set[int] = set()
        if "torch._dynamo" in sys.modules:
            self._mode: _DispatchMeter = _MeterBesideDynamo(self)
        else:
            self._mode = _DispatchMeter(self)
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
        """Count nothing in a `with` block."""
        was_counting, self._mode.is_counting = self._mode.is_counting, False
        try:
            yield
        finally:
            self._mode.is_counting = was_counting

    def greet(self, values: Any) -> None:
        """Register storages that exist already, and which of them are weights."""
        for tensor, storage in _storages(values):
            self._meet(storage, is_born=False)
            if isinstance(tensor, torch.nn.Parameter):
                self._weights.add(storage._cdata)

    def count(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Count a call of an operator, and the new storages of its result."""
        self.calls[str(func.overloadpacket)] += 1
        for _, storage in _storages(result):
            self._meet(storage, is_born=True)
        if self._seen:
            self._seen(func, args, kwargs, result)

    def _meet(self, storage: torch.UntypedStorage, *, is_born: bool) -> None:
        """Note a storage until its death; count its bytes if it was born here.

        A known storage counts nothing.
        """
        key = storage._cdata
        if key not in self._known:
            self._known.add(key)
            nbytes = storage.nbytes() if is_born else 0
            self.born_bytes += nbytes
            size = -(-nbytes // _GRAIN) * _GRAIN
            self._change(size)
            weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        """Forget a dead storage, because a new one may have the same address as its key."""
        for keys in (self._known, self._weights, self._saved):
            keys.discard(key)
        self._change(-size)

    def _change(self, size: int) -> None:
        self.live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        if self._changed and size:
            self._changed()

    def _save(self, tensor: torch.Tensor) -> torch.Tensor:
        """Count a tensor that autograd saves for backward, and return an alias of it.

        A weight, or a storage that was saved before, counts nothing.
        """
        for _, storage in _storages(tensor):
            self._meet(storage, is_born=False)
            key = storage._cdata
            is_weight = isinstance(tensor, torch.nn.Parameter) or key in self._weights
            if not is_weight and key not in self._saved:
                self._saved.add(key)
                self.saved_bytes += storage.nbytes()
        # An alias, because the tensor itself would keep its graph alive in a reference cycle.
        with self.paused():
            return tensor.detach()


class _DispatchMeter(TorchDispatchMode):
    """Calls the meter for every operator below autograd."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter
        self.is_counting = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Avoid that torch imports Dynamo at the first operator, which takes 2 s."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator and count it.

        In inference mode, a composite operator is first divided into its parts.
        """
        if not self.is_counting:
            return func(*args, **(kwargs or {}))
        if torch.is_inference_mode_enabled():  # there, composite operators arrive undivided
            with self:
                result = func.decompose(*args, **(kwargs or {}))
                if result is not NotImplemented:
                    return result
        if func is not torch.ops.aten.lift_fresh.default:  # its argument is new: from torch.tensor
            self._meter.greet((args, kwargs))
        result = func(*args, **(kwargs or {}))
        self._meter.count(func, args, kwargs or {}, result)
        return result


class _MeterBesideDynamo(_DispatchMeter):
    """A _DispatchMeter for use after Dynamo was imported, which must not compile the meter."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_dispatch__(func, types, args, kwargs)


def _storages(values: Any) -> Iterator[tuple[torch.Tensor, torch.UntypedStorage]]:
    """Yield the tensors in nested values that have memory, with their storages."""
    for leaf in tree_leaves(values):
        if not isinstance(leaf, torch.Tensor):
            continue
        if leaf.layout is torch.strided and leaf.device.type != "meta":
            yield leaf, leaf.untyped_storage()
