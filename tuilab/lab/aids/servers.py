"""The processes that multiprocessing keeps for what it spawns: a server that forks, and one that clears away.

Each ends when the last process that knows it has closed its line, and has a folder or a lock to remove. An orderly exit sees
to that; a worker leaves without one.
"""

import contextlib
import os
import signal
import sys
import threading
from typing import Any

_PATIENCE_S = 2.0  # a child that lives on keeps a line open; then they are ended as what is left behind


def end_servers() -> None:
    """End those of this process, if it has any, and let multiprocessing clear away what it has made for them."""
    tracker = getattr(sys.modules.get("multiprocessing.resource_tracker"), "_resource_tracker", None)
    if getattr(tracker, "_pid", None) is not None:
        ending = threading.Thread(target=_end, daemon=True)
        ending.start()
        ending.join(_PATIENCE_S)


def _end() -> None:
    from multiprocessing import forkserver, resource_tracker, util

    server: Any = forkserver._forkserver  # multiprocessing has no public call for any of these three ends
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
