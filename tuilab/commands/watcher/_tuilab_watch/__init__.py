"""Watch the training in this process for tuilab, from outside the script.

Torch calls `begin` at the end of `import torch`. Without TUILAB_WATCH in the environment, nothing
happens. Nothing here may ever raise into the script, or make torch load more than the script did.
"""

from __future__ import annotations

import os
import sys
from typing import Any

VARIABLE = "TUILAB_WATCH"  # the folder for marks
HOW = "TUILAB_WATCH_HOW"  # "all" or "steps"
_watcher: Any = None


def begin() -> None:
    """Begin to watch, if this process belongs to a command that tuilab runs."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    try:
        _the_watcher(folder).begin(sys.modules["torch"], is_all=os.environ.get(HOW) != "steps")
    except Exception as problem:
        tell_trouble(folder, problem)


def log(step: float, values: dict[str, Any]) -> None:
    """Mark values that the script itself logs, even before it has loaded torch."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    try:
        _the_watcher(folder).log(step, values)
    except Exception as problem:
        tell_trouble(folder, problem)


def _the_watcher(folder: str) -> Any:
    global _watcher
    if _watcher is None:
        from .importlib_bootstrap import hide_frames
        from .watcher import Watcher

        hide_frames()
        _watcher = Watcher(folder)
    return _watcher


def tell_trouble(folder: str, problem: BaseException) -> None:
    """Write to a file why this process is not watched, or not completely.

    If the file cannot be written either, tuilab finds no reason for this process.
    """
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(os.path.join(folder, f"{os.getpid()}.trouble"), flags, 0o600)
        with open(fd, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{type(problem).__name__}: {problem}"[:1000])
    except OSError:
        return
