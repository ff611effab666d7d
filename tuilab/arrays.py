"""Load numpy and scipy without threads for matrix products: tuilab multiplies no large matrices.

When OpenBLAS is loaded, it starts a thread for each core. Each spins for a while, and would disturb
measurements.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

_THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def _with_one_thread() -> Iterator[None]:
    """Within the block, let OpenBLAS start one thread, unless the user set the number.

    The variable is set for C only, not in `os.environ`, from which measuring processes get their
    environment. But another thread that starts a process without an environment would pass it on.
    """
    if _THREADS in os.environ:
        yield
        return
    os.putenv(_THREADS, "1")
    try:
        yield
    finally:
        os.unsetenv(_THREADS)


with _with_one_thread():
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NDArray", "np", "special"]


@cache
def special() -> Any:
    """Return `scipy.special`, which is slow to load."""
    with _with_one_thread():  # scipy has an OpenBLAS of its own
        return import_module("scipy.special")
