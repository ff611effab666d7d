"""The words before the command line of a worker: `lab.arm(..., prefix=["torchrun", ...])`."""

import sys
from collections.abc import Sequence
from pathlib import Path

_LAUNCHER = (sys.executable, "-P", "-m", "tuilab.lab.ranks")


def complete(prefix: Sequence[str]) -> list[str]:
    """Return the complete prefix of a worker; torchrun is replaced by our launcher."""
    if prefix and Path(prefix[0]).name == "torchrun":
        return [*_LAUNCHER, *prefix[1:], "--"]
    return list(prefix)


def has_ranks(prefix: Sequence[str]) -> bool:
    """Say whether a complete prefix starts ranks."""
    return tuple(prefix[: len(_LAUNCHER)]) == _LAUNCHER
