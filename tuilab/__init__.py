"""tuilab: a lab in the terminal that checks the folklore of PyTorch training on your own box."""

import os

__version__ = "0.1.0"

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuilab.lab.arms import ArmFailed as ArmFailed
    from tuilab.lab.lab import Lab as Lab

_tell: Callable[[float, dict[str, Any]], None] | None = None


def log(step: float, /, **values: Any) -> None:
    """Log values of a step of a script that `tuilab exec` runs, as in `tuilab.log(step, loss=loss)`: each becomes a curve.

    A tensor may lie on a GPU: nobody waits for it, and its value comes later. Elsewhere than under `tuilab exec` this does
    nothing, in less than a microsecond; it never loads torch, and never raises for what a value is.
    """
    if not values:
        return
    tell = _tell or _find_teller()
    if tell is not _nobody:
        tell(step, values)


def _find_teller() -> Callable[[float, dict[str, Any]], None]:
    """Decide once whether somebody listens: what watches stands on the path of the processes that `tuilab exec` starts."""
    global _tell
    _tell = _nobody
    if os.environ.get("TUILAB_WATCH"):
        from importlib import import_module  # `tuilab list` needs none

        try:
            _tell = import_module("_tuilab_watch").log
        except ImportError:  # its folder was taken off the path
            return _nobody
    return _tell


def _nobody(step: float, values: dict[str, Any]) -> None:
    """Nobody listens."""


def __getattr__(name: str) -> Any:
    """Return `Lab` or `ArmFailed` on first use: `import tuilab` alone must not load torch."""
    if name == "Lab":
        from tuilab.lab.lab import Lab

        return Lab
    if name == "ArmFailed":
        from tuilab.lab.arms import ArmFailed

        return ArmFailed
    raise AttributeError(f"module 'tuilab' has no attribute {name!r}")
