"""Hears that the script has ended, while Python still has to wait for threads, call what was registered, and unwind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def call_at_end(function: Callable[[], None]) -> None:
    """Have a function called as soon as the main thread is through.

    Python calls the last one first, so that who asks once more comes before those that wait for threads, as the pools of
    concurrent.futures do.
    """
    register: Any = getattr(threading, "_register_atexit", None)  # from Python 3.9 on
    if register is None:
        return
    try:
        register(function)
    except RuntimeError:  # it has ended already
        return
