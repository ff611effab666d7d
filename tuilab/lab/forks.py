"""What becomes of the processes that a scenario forks: they end with the worker, and by themselves as in any script."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tuilab.engine import processes
from tuilab.lab.failures.failure import describe, exit_code_of, text_of


def follow_to_death(parent: int, thread: int) -> Callable[[], None]:
    """Return a fork hook: children of the worker (loader workers) die with it, daemons of their own are left alone.

    So are the children of other threads: the kernel ties a child to the thread that made it.
    """

    def follow() -> None:
        if os.getppid() == parent and threading.get_ident() == thread:
            processes.die_with_parent(parent)

    return follow


class ForksEnd:
    """Within, a child of a fork that comes to the end ends there: the records and the line are its parent's."""

    def __init__(self, source: Path) -> None:
        self._source = source

    def __enter__(self) -> None:
        self._pid = os.getpid()

    def __exit__(self, kind: object, problem: BaseException | None, _: object) -> None:
        if os.getpid() != self._pid:
            _end(problem, self._source)


def flush_prints() -> None:
    """Have what was printed leave this process."""
    for name in ("stdout", "stderr"):
        with contextlib.suppress(
            BaseException
        ):  # removed or closed by the scenario, or an object of its own: what ended well has
            getattr(sys, name).flush()


def _end(problem: BaseException | None, source: Path) -> None:
    """End as Python does: what nobody caught is printed."""
    code, said = (0, "") if problem is None else (1, describe(problem, source).traceback)
    if problem is not None and issubclass(type(problem), SystemExit):
        asked = exit_code_of(problem)
        code, said = (1, f"{text_of(problem)}\n") if asked is None else (asked, "")
    with contextlib.suppress(BaseException):
        sys.stderr.write(said)
    flush_prints()
    os._exit(code & 0xFF)
