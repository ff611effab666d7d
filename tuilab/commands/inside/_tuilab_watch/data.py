"""Times what a loop waits for in a DataLoader: its next batch, and the start of its workers."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from typing import Any

from . import layout

_now = time.monotonic_ns
_MOST_NS = layout.MOST


def watch(watcher: Any) -> None:
    """Hook into the DataLoader, if it is loaded and was not hooked into before."""
    module = sys.modules.get("torch.utils.data.dataloader")
    one, many = getattr(module, "_BaseDataLoaderIter", None), getattr(module, "DataLoader", None)
    if one is None or many is None or hasattr(one, "_is_watched"):
        return
    one.__next__ = _timed(watcher, one.__next__)
    many.__iter__ = _timed(watcher, _seen(watcher, many.__iter__))
    one._is_watched = True


def _seen(watcher: Any, begin: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(begin)
    def seen(this: Any) -> Any:
        try:
            watcher.sees_loader(this)
        except Exception as problem:
            watcher.fail(problem)
        return begin(this)

    return seen


def _timed(watcher: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    waited = layout.last_of(layout.WAITED)
    waited_for_workers = layout.last_of(layout.WAITED, flags=layout.FROM_WORKERS)

    @functools.wraps(function)
    def timed(this: Any) -> Any:
        began = _now()
        try:
            return function(this)
        finally:
            ended = _now()
            put, spent_ns = watcher.put, watcher.spent_ns
            last = waited_for_workers if has_workers(this) else waited
            put(began, ended, 0.0, last + (spent_ns if spent_ns < _MOST_NS else _MOST_NS))
            watcher.spent_ns = _now() - ended

    return timed


def has_workers(loader: Any) -> bool:
    """Say whether a DataLoader, or what iterates over one, has its batches made by other processes."""
    state = loader.__dict__
    return bool(state.get("_num_workers") or state.get("num_workers"))
