"""Time what a loop waits for in a DataLoader: its next batch, and the start of its workers.

Each loop has a number. So tuilab can distinguish a loop that lies as a whole between two steps from
the loops that feed the training.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from . import layout

_now = time.monotonic_ns
_MOST_NS = layout.MOST
_NUMBER = "_tuilab_loop"  # the attribute of the iterator of a DataLoader that has the loop's number
_MOST_LOOPS = 65_535  # after so many loops, the numbers begin again


def watch(watcher: Any) -> None:
    """Wrap functions of the DataLoader, if it is loaded and they are not wrapped yet."""
    module = sys.modules.get("torch.utils.data.dataloader")
    iterator_class = getattr(module, "_BaseDataLoaderIter", None)
    loader_class = getattr(module, "DataLoader", None)
    if iterator_class is None or loader_class is None or hasattr(iterator_class, "_is_watched"):
        return
    waits = Waits(watcher)
    iterator_class.__next__ = waits.timed_next(iterator_class.__next__)
    loader_class.__iter__ = waits.timed_iter(_reported_iter(watcher, loader_class.__iter__))
    iterator_class._is_watched = True


def _reported_iter(watcher: Any, begin: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper that reports how a DataLoader loads, before it begins a loop."""

    @functools.wraps(begin)
    def reported(this: Any) -> Any:
        try:
            watcher.report_loader(this)
        except Exception as problem:
            watcher.fail(problem)
        return begin(this)

    return reported


class Waits:
    """Marks the waits of all loops over DataLoaders."""

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        self._has_gradients = watcher.torch.is_grad_enabled
        self._loops = 0

    def timed_iter(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper that begins a loop, and marks how long its workers take to start."""

        @functools.wraps(function)
        def timed(this: Any) -> Any:
            began = _now()
            number = 0
            flags = 0
            try:
                loop = function(this)
                number = self._loops % _MOST_LOOPS + 1
                self._loops += 1
                flags = layout.BEGINS
                loop.__dict__[_NUMBER] = number
                return loop
            finally:
                self._mark(this, began, number, flags)

        return timed

    def timed_next(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper that fetches the next batch, and marks how long that takes."""

        @functools.wraps(function)
        def timed(this: Any) -> Any:
            began = _now()
            flags = 0
            try:
                return function(this)
            except StopIteration:
                flags = layout.ENDS
                raise
            finally:
                self._mark(this, began, this.__dict__.get(_NUMBER, 0), flags)

        return timed

    def _mark(self, loader: Any, began: int, number: int, flags: int) -> None:
        """Mark a wait from `began` until now; `number` is that of the loop.

        The flags also say whether workers make the data, an evaluation reads it, or another thread
        does.
        """
        ended = _now()
        watcher = self._watcher
        if has_workers(loader):
            flags |= layout.FROM_WORKERS
        if not self._has_gradients():
            flags |= layout.WITHOUT_GRADIENTS
        if watcher.threads and threading.get_ident() not in watcher.threads:
            flags |= layout.ELSEWHERE
        spent_ns = min(watcher.spent_ns, _MOST_NS)
        last_word = layout.last_of(layout.WAITED, number, flags) + spent_ns
        watcher.put(began, ended, 0.0, last_word)
        if watcher.gpu is not None and not flags & layout.ELSEWHERE:
            watcher.gpu.mark_landed()  # an evaluation makes no steps, which do this otherwise
        watcher.spent_ns = _now() - ended


def has_workers(loader: Any) -> bool:
    """Return whether other processes make the batches of a DataLoader, or of its iterator."""
    state = loader.__dict__
    return bool(state.get("_num_workers") or state.get("num_workers"))
