"""What becomes of the processes that a scenario forks, and of the servers that multiprocessing starts for it: they end with
the worker, and by themselves as in any script.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tuilab.engine import processes
from tuilab.lab.failures.failure import describe, exit_code_of, text_of

_PATIENCE_S = (
    2.0  # a child that lives on keeps a line open; then they are ended as what is left behind
)


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
    code, traceback_text = (0, "") if problem is None else (1, describe(problem, source).traceback)
    if problem is not None and issubclass(type(problem), SystemExit):
        exit_code = exit_code_of(problem)
        code, traceback_text = (
            (1, f"{text_of(problem)}\n") if exit_code is None else (exit_code, "")
        )
    with contextlib.suppress(BaseException):
        sys.stderr.write(traceback_text)
    flush_prints()
    os._exit(code & 0xFF)


def end_servers() -> None:
    """End the servers that multiprocessing started for this process, and let it clear away what it made for them.

    One server forks, one clears away. Each ends when the last process that knows it has closed its line, and has a folder or a
    lock to remove. An orderly exit does that; a worker leaves without one.
    """
    tracker = getattr(
        sys.modules.get("multiprocessing.resource_tracker"), "_resource_tracker", None
    )
    if getattr(tracker, "_pid", None) is not None:
        ending = threading.Thread(target=_end_them, daemon=True)
        ending.start()
        ending.join(_PATIENCE_S)


def _end_them() -> None:
    from multiprocessing import forkserver, resource_tracker, util

    server: Any = (
        forkserver._forkserver
    )  # multiprocessing has no public call for any of these three ends
    tracker: Any = resource_tracker._resource_tracker
    finalizers: Any = util
    _kill(server)
    for end in (server._stop, finalizers._run_finalizers, tracker._stop):
        with contextlib.suppress(Exception):  # what one cannot end does not keep the next
            end()


def _kill(server: Any) -> None:
    """Kill a fork server: an orderly exit of one that has loaded torch takes seconds on a busy machine."""
    if server._forkserver_pid is not None:
        with contextlib.suppress(OSError):
            os.kill(server._forkserver_pid, signal.SIGKILL)
