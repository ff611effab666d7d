"""Notice that the script has ended, before Python waits for threads and shuts down."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def call_at_end(function: Callable[[], None]) -> None:
    """Have Python call a function as soon as the main thread has ended.

    Python calls the function first that was registered last. So the watcher registers its function
    again and again. Then its function runs before functions that wait for threads, such as the
    function of concurrent.futures.
    """
    register: Any = getattr(threading, "_register_atexit", None)  # from Python 3.9 on
    if register is None:
        return
    try:
        register(function)
    except RuntimeError:  # the main thread has ended already
        return
