"""Bring numbers from a GPU to the host without ever waiting for the GPU, many at once.

A number is kept on the GPU until there are enough of them, or until the first has waited for half a
second. Then one copy brings all of them. A process that is killed loses the numbers that it keeps.

A number is kept by a reference to its tensor where that is safe, because a copy on the GPU is one
more kernel in each step. It is not safe if the memory of the tensor changes unnoticed: collectives
do not count as changes, and a CUDA graph writes its results to the same place. Then the number is
copied on the GPU at once.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

_MOST_KEPT = 32  # numbers of one dtype
_LONGEST_NS = 500_000_000  # that a number is kept
_MOST_COPIES = 16  # that have not landed; more numbers are not brought
_BLOCK = 512  # bytes: a reference to a larger block would keep memory that the script needs
_OVERWRITTEN = -1  # no tensor has this version
_GRAPHS_OF_COMPILED = "torch._inductor.cudagraph_trees"

# A function that marks a number; None if the number was overwritten before it was copied.
MarkNumber = Callable[["float | None"], None]


class _Kept:
    """The numbers of one dtype and one stream that are still on the GPU."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.since_ns = 0  # when the first of them was kept
        self.tensors: list[Any] = []
        self.versions: list[int | None] = []  # None: the tensor is our copy
        self.marks: list[MarkNumber] = []
        self.places: dict[int, int] = {}  # index of each tensor of the script, by its address
        self.copies: list[Any] = []  # memory on the GPU for our copies, if there were any

    def is_overwritten(self, index: int) -> bool:
        """Return whether the script has overwritten a tensor since it was kept."""
        version = self.versions[index]
        return version is not None and self.tensors[index]._version != version


class GpuNumbers:
    """The numbers that are on their way to the host."""

    def __init__(
        self,
        watcher: Any,
        cuda: Any,
        record_event: Callable[[Any], Any],
        free_event: Callable[[Any], object],
    ) -> None:
        """`record_event` returns an event recorded in a stream; `free_event` takes it back."""
        self._watcher = watcher
        self._cuda = cuda
        self._record_event = record_event
        self._free_event = free_event
        self._kept: dict[tuple[int, Any], _Kept] = {}  # by stream and dtype
        # Copies that have not landed: event, pinned numbers, what marks them.
        self._landing: deque[tuple[Any, Any, list[MarkNumber]]] = deque()
        self._free: dict[Any, list[Any]] = {}  # pinned memory for copies, by dtype
        self._may_refer = True  # whether references to the script's tensors are safe

    def keep(self, tensor: Any, stream: Any, mark: MarkNumber, *, may_refer: bool) -> bool:
        """Keep a number of one element; return whether `mark` will be called for it.

        With `may_refer`, the script is not expected to overwrite its tensor.
        """
        if len(self._landing) >= _MOST_COPIES:
            return False
        key = (stream.cuda_stream, tensor.dtype)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _Kept(stream)
        plain = tensor.detach()
        version = None
        if may_refer and self._is_safe(plain, kept):
            version = plain._version
            kept.places[plain.data_ptr()] = len(kept.tensors)
        else:
            plain = self._copy_on_gpu(plain, kept)
        if not kept.tensors:
            kept.since_ns = time.monotonic_ns()
        kept.tensors.append(plain)
        kept.versions.append(version)
        kept.marks.append(mark)
        if len(kept.tensors) >= _MOST_KEPT:
            self._send(kept)
        return True

    def land(self, *, is_last: bool = False) -> None:
        """Send the numbers that have waited long enough, and mark those that have landed."""
        now_ns = time.monotonic_ns()
        for kept in self._kept.values():
            if kept.tensors and (is_last or now_ns - kept.since_ns > _LONGEST_NS):
                self._send(kept)
        landing = self._landing
        while landing and landing[0][0].query():
            event, numbers, marks = landing.popleft()
            self._free_event(event)
            for mark, number in zip(marks, numbers.tolist(), strict=False):
                mark(float(number))
            self._free[numbers.dtype].append(numbers)

    @property
    def are_landing(self) -> bool:
        return bool(self._landing)

    def _is_safe(self, tensor: Any, kept: _Kept) -> bool:
        """Return whether a reference to a tensor of the script is safe."""
        if not self._may_refer:
            return False
        if kept.tensors and kept.is_overwritten(-1):
            self._may_refer = False
            return False
        # A tensor at the place of one that we refer to is the result of a CUDA graph, which has
        # overwritten the other one.
        overwritten = kept.places.get(tensor.data_ptr())
        if overwritten is not None:
            kept.versions[overwritten] = _OVERWRITTEN
        distributed = sys.modules.get("torch.distributed")
        are_ranks = getattr(distributed, "is_initialized", bool)()
        if overwritten is not None or are_ranks or _GRAPHS_OF_COMPILED in sys.modules:
            self._may_refer = False
            return False
        return bool(tensor.untyped_storage().nbytes() <= _BLOCK)

    def _copy_on_gpu(self, tensor: Any, kept: _Kept) -> Any:
        """Copy a number into our memory on the GPU; return the place of the copy."""
        if not kept.copies:
            torch = self._watcher.torch
            memory = torch.empty(_MOST_KEPT, dtype=tensor.dtype, device=tensor.device)
            kept.copies = list(memory.unbind())
        place = kept.copies[len(kept.tensors)]
        place.copy_(tensor.reshape(()))
        return place

    def _send(self, kept: _Kept) -> None:
        """Copy the kept numbers to the host in one copy, and forget them.

        A number whose tensor was overwritten is lost, and from then on all are copied at once.
        """
        tensors = []
        marks = []
        for index, mark in enumerate(kept.marks):
            if kept.is_overwritten(index):
                self._may_refer = False
                mark(None)
            else:
                tensors.append(kept.tensors[index].reshape(()))
                marks.append(mark)
        kept.tensors.clear()
        kept.versions.clear()
        kept.marks.clear()
        kept.places.clear()
        if not tensors:
            return
        with self._in_stream(kept.stream):
            numbers = self._take_pinned(tensors[0].dtype)
            numbers[: len(tensors)].copy_(self._watcher.torch.stack(tensors), non_blocking=True)
            event = self._record_event(kept.stream)
        self._landing.append((event, numbers, marks))

    def _in_stream(self, stream: Any) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = self._cuda.stream(stream)
        return context

    def _take_pinned(self, dtype: Any) -> Any:
        """Return pinned memory for one copy; the first call for a dtype allocates all of it."""
        if dtype not in self._free:
            shape = (_MOST_COPIES + 1, _MOST_KEPT)
            memory = self._watcher.torch.empty(shape, dtype=dtype, pin_memory=True)
            self._free[dtype] = list(memory.unbind())
        return self._free[dtype].pop()
