"""Notices that the script has ended, before Python waits for threads and shuts down."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def call_at_end(function: Callable[[], None]) -> None:
    """Have a function called as soon as the main thread has ended.

    Python calls the function that was registered last first. So the watcher registers again and again: then its function
    runs before one that waits for threads, as concurrent.futures registers one.
    """
    register: Any = getattr(threading, "_register_atexit", None)  # from Python 3.9 on
    if register is None:
        return
    try:
        register(function)
    except RuntimeError:  # it has ended already
        return
