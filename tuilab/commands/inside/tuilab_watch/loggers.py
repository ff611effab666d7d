"""What the script tells its loggers, marked as it is told; only those that are loaded when the first step begins."""

from __future__ import annotations

from typing import Any


def watch(watcher: Any) -> None:
    """Hook into every logger that the script has loaded."""
