"""Forked processes of a scenario, and servers of multiprocessing: how they end with the worker."""

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

_PATIENCE_S = 2.0  # for the servers to end; later the supervisor ends them as leftovers


def follow_to_death(parent: int, thread: int) -> Callable[[], None]:
    """Return a fork hook that ties children of this process, such as loader workers, to its life.

    Grandchildren are left alone. So are children of other threads, because the kernel would kill
    them with their thread.
    """

    def follow() -> None:
        if os.getppid() == parent and threading.get_ident() == thread:
            processes.die_with_parent(parent)

    return follow


class ForksEnd:
    """A block at whose end a forked child exits: journal and socket belong to its parent."""

    def __init__(self, source: Path) -> None:
        self._source = source

    def __enter__(self) -> None:
        self._pid = os.getpid()

    def __exit__(self, kind: object, problem: BaseException | None, _: object) -> None:
        if os.getpid() != self._pid:
            _end(problem, self._source)


def flush_prints() -> None:
    """Flush stdout and stderr."""
    for name in ("stdout", "stderr"):
        # The scenario may have removed, closed or replaced it, which must not change the result.
        with contextlib.suppress(BaseException):
            getattr(sys, name).flush()


def _end(problem: BaseException | None, source: Path) -> None:
    """End this forked child as Python does: an uncaught exception is printed."""
    code = 0
    output = ""
    if problem is not None and issubclass(type(problem), SystemExit):
        exit_code = exit_code_of(problem)
        if exit_code is None:
            code = 1
            output = f"{text_of(problem)}\n"
        else:
            code = exit_code
    elif problem is not None:
        code = 1
        output = describe(problem, source).traceback
    with contextlib.suppress(BaseException):
        sys.stderr.write(output)
    flush_prints()
    os._exit(code & 0xFF)


def end_servers() -> None:
    """End the servers that multiprocessing has started for this process, and remove their files.

    They are the fork server and the resource tracker. A normal exit of Python ends them, but a
    worker exits without that. The wait ends after _PATIENCE_S, whether they have ended or not.
    """
    tracker = getattr(
        sys.modules.get("multiprocessing.resource_tracker"), "_resource_tracker", None
    )
    if getattr(tracker, "_pid", None) is not None:
        ending = threading.Thread(target=_end_servers, daemon=True)
        ending.start()
        ending.join(_PATIENCE_S)


def _end_servers() -> None:
    """Kill the fork server, and let multiprocessing clean up; errors are ignored."""
    from multiprocessing import forkserver, resource_tracker, util

    # multiprocessing has no public functions for this.
    server: Any = forkserver._forkserver
    tracker: Any = resource_tracker._resource_tracker
    finalizers: Any = util
    _kill(server)
    for end in (server._stop, finalizers._run_finalizers, tracker._stop):
        with contextlib.suppress(Exception):  # an error must not stop the other two
            end()


def _kill(server: Any) -> None:
    """Kill the fork server: a normal exit with torch loaded may take seconds."""
    if server._forkserver_pid is not None:
        with contextlib.suppress(OSError):
            os.kill(server._forkserver_pid, signal.SIGKILL)
