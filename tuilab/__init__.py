"""tuilab: a lab in the terminal that checks the folklore of PyTorch training on your machine."""

import os

__version__ = "0.1.0"

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuilab.lab.arms import ArmFailed as ArmFailed
    from tuilab.lab.lab import Lab as Lab

_log: Callable[[float, dict[str, Any]], None] | None = None  # chosen at the first call of `log`


def log(step: float, /, **values: Any) -> None:
    """Log values of a step of a script that `tuilab exec` runs.

    For example, `tuilab.log(step, loss=loss)` adds a point to the curve `loss`. A tensor may be on
    a GPU: the call does not wait for it, and its value follows later. In other scripts this does
    nothing, in less than a microsecond. It never loads torch, and no value makes it raise.
    """
    if not values:
        return
    log_values = _log or _choose_log()
    if log_values is not _log_nothing:
        log_values(step, values)


def _choose_log() -> Callable[[float, dict[str, Any]], None]:
    """Choose once how to log: with the watcher, which `tuilab exec` puts on the import path."""
    global _log
    _log = _log_nothing
    if os.environ.get("TUILAB_WATCH"):
        from importlib import import_module  # imported here: `tuilab list` does not need it

        try:
            _log = import_module("_tuilab_watch").log
        except ImportError:  # its folder was taken off the path
            return _log_nothing
    return _log


def _log_nothing(step: float, values: dict[str, Any]) -> None:
    """Ignore the values: no command watches this script."""


def __getattr__(name: str) -> Any:
    """Return `Lab` or `ArmFailed` on first use: `import tuilab` alone must not load torch."""
    if name == "Lab":
        from tuilab.lab.lab import Lab

        return Lab
    if name == "ArmFailed":
        from tuilab.lab.arms import ArmFailed

        return ArmFailed
    raise AttributeError(f"module 'tuilab' has no attribute {name!r}")
