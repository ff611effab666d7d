"""Mark the pauses in which Python collects garbage, if they are long enough to matter to a step.

A full collection looks at every object that the script holds. Beside many objects it takes longer
than many steps.
"""

from __future__ import annotations

import gc
import time
from typing import Any

from . import layout

_now = time.monotonic_ns
_LEAST_NS = 1_000_000  # shorter pauses are not marked: there are thousands of them


def watch(watcher: Any) -> None:
    """Have Python call the watcher before and after each collection."""
    began_ns = 0

    def notice(phase: str, info: dict[str, int]) -> None:
        nonlocal began_ns
        now_ns = _now()
        if phase == "start":
            began_ns = now_ns
            return
        # A process that has made no mark, such as a worker of a DataLoader, makes none here either.
        if now_ns - began_ns < _LEAST_NS or not watcher.has_marks:
            return
        try:
            watcher.mark(layout.COLLECTED, began_ns, now_ns, 0.0, info.get("generation", 0))
        except Exception as problem:
            watcher.fail(problem)

    gc.callbacks.append(notice)
