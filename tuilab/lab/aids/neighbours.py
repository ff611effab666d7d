"""Busy neighbours: processes that want a core each, as those of other users do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from tuilab.engine import processes

# A bare interpreter that says when it begins, and spins.
_SPIN = "import os; os.write(1, b'.')\nwhile True: pass"


@contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """Have that many busy processes beside this one in a `with` block; they end with it, and with this process."""
    with ExitStack() as stack:
        found = [stack.enter_context(_spinning()) for _ in range(count)]
        for process in found:
            if process.stdout is None or not process.stdout.read(1):
                raise RuntimeError(f"a busy neighbour ended with exit code {process.wait()} before it was busy")
        yield


@contextmanager
def _spinning() -> Iterator["subprocess.Popen[bytes]"]:
    follow = partial(processes.die_with_parent, os.getpid())
    command = [sys.executable, "-I", "-S", "-c", _SPIN]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=follow) as process:
        try:
            yield process
        finally:
            process.kill()
