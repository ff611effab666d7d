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
        watcher = _get_watcher(folder)
        is_all = os.environ.get(HOW) != "steps"
        watcher.begin(sys.modules["torch"], is_all=is_all)
    except Exception as problem:
        write_trouble(folder, problem)


def log(step: float, values: dict[str, Any]) -> None:
    """Mark values that the script itself logs, even before it has loaded torch."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    try:
        _get_watcher(folder).log(step, values)
    except Exception as problem:
        write_trouble(folder, problem)


def _get_watcher(folder: str) -> Any:
    """Return the watcher of this process; the first call creates it."""
    global _watcher
    if _watcher is None:
        from .importlib_bootstrap import hide_frames
        from .watcher import Watcher

        hide_frames()
        _watcher = Watcher(folder)
    return _watcher


def write_trouble(folder: str, problem: BaseException) -> None:
    """Write to a file why this process is not watched, or not completely.

    If the file cannot be written either, tuilab finds no reason for this process.
    """
    try:
        path = os.path.join(folder, f"{os.getpid()}.trouble")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(path, flags, 0o600)
        with open(fd, "w", encoding="utf-8", errors="replace") as file:
            message = f"{type(problem).__name__}: {problem}"
            file.write(message[:1000])
    except OSError:
        return
