"""numpy and scipy, loaded without the threads that multiply matrices: none is multiplied here that is worth one.

OpenBLAS starts a thread for each core as it is loaded, and each spins for a while on what somebody may be measuring.
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
    """Ask for one, unless the user has asked for some, where C looks, and not in `os.environ`.

    What measures is started with that one: by who says nothing of an environment, in another thread, it would get C's.
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
