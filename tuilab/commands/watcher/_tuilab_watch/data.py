"""Time what a loop waits for in a DataLoader: its next batch, and the start of its workers.

Each loop has a number. So tuilab can distinguish a loop that lies as a whole between two steps from
the loops that feed the training.
"""

from __future__ import annotations

import _thread
import functools
import sys
import time
from collections.abc import Callable
from typing import Any

from . import layout

_now = time.monotonic_ns
_MOST_NS = layout.MOST
# The attribute of the iterator of a DataLoader that has the last word of the loop's marks.
_WORD = "_tuilab_loop"
_MOST_LOOPS = 65_535  # after so many loops, the numbers begin again


def watch(watcher: Any) -> None:
    """Wrap functions of the DataLoader, if it is loaded and they are not wrapped yet."""
    module = sys.modules.get("torch.utils.data.dataloader")
    iterator_class = getattr(module, "_BaseDataLoaderIter", None)
    loader_class = getattr(module, "DataLoader", None)
    if iterator_class is None or loader_class is None or hasattr(iterator_class, "_is_watched"):
        return
    waits = Waits(watcher)
    setattr(iterator_class, _WORD, 0)  # of a loop that began before this
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
                loop.__dict__[_WORD] = last_word_of(loop, number)
                return loop
            finally:
                self._mark(began, _now(), last_word_of(this, number), flags)

        return timed

    def timed_next(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper that fetches the next batch, and marks how long that takes."""
        # Locals are faster than attributes, and this function runs in each step.
        watcher = self._watcher
        has_gradients = self._has_gradients
        stepping_threads = watcher.threads
        get_thread = _thread.get_ident
        mark_unusual = self._mark_unusual

        @functools.wraps(function)
        def timed(this: Any) -> Any:
            began = _now()
            try:
                batch = function(this)
            except StopIteration:
                mark_unusual(this, began, _now(), layout.ENDS)
                raise
            except BaseException:
                mark_unusual(this, began, _now(), 0)
                raise
            ended = _now()
            last_word = this._tuilab_loop
            is_usual = last_word and watcher.gpu is None
            if is_usual and has_gradients() and get_thread() in stepping_threads:
                spent_ns = watcher.spent_ns
                if spent_ns > _MOST_NS:
                    spent_ns = _MOST_NS
                put = watcher.put
                put(began, ended, 0.0, last_word + spent_ns)
                watcher.spent_ns = _now() - ended
            else:
                mark_unusual(this, began, ended, 0)
            return batch

        return timed

    def _mark_unusual(self, loop: Any, began: int, ended: int, flags: int) -> None:
        """Mark a wait that needs more than the fast path."""
        self._mark(began, ended, loop._tuilab_loop or last_word_of(loop, 0), flags)

    def _mark(self, began: int, ended: int, last_word: int, flags: int) -> None:
        """Mark a wait; `last_word` is that of the loop's marks.

        The flags also say whether an evaluation reads the data, or another thread does.
        """
        watcher = self._watcher
        if not self._has_gradients():
            flags |= layout.WITHOUT_GRADIENTS
        if watcher.threads and _thread.get_ident() not in watcher.threads:
            flags |= layout.ELSEWHERE
        spent_ns = min(watcher.spent_ns, _MOST_NS)
        watcher.put(began, ended, 0.0, (last_word | layout.last_of(0, flags=flags)) + spent_ns)
        if watcher.gpu is not None and not flags & layout.ELSEWHERE:
            watcher.gpu.mark_landed()  # an evaluation makes no steps, which do this otherwise
        watcher.spent_ns = _now() - ended


def last_word_of(loader: Any, number: int) -> int:
    """Return the last word of the marks of a loop, which says whether workers make its data."""
    flags = 0
    if has_workers(loader):
        flags = layout.FROM_WORKERS
    return layout.last_of(layout.WAITED, number, flags)


def has_workers(loader: Any) -> bool:
    """Return whether other processes make the batches of a DataLoader, or of its iterator."""
    state = loader.__dict__
    return bool(state.get("_num_workers") or state.get("num_workers"))
