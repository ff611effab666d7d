"""The words that stand before a worker's command line, as in `lab.arm(..., prefix=["torchrun", ...])`."""

import sys
from collections.abc import Sequence
from pathlib import Path

_LAUNCHER = (sys.executable, "-P", "-m", "tuilab.lab.ranks")


def complete(prefix: Sequence[str]) -> list[str]:
    """Return a prefix as it can stand before a worker's command line; for torchrun, that of torch's own environment."""
    if prefix and Path(prefix[0]).name == "torchrun":
        return [*_LAUNCHER, *prefix[1:], "--"]
    return list(prefix)


def has_ranks(prefix: Sequence[str]) -> bool:
    """Whether what stands behind this completed prefix runs as ranks."""
    return tuple(prefix[: len(_LAUNCHER)]) == _LAUNCHER
