"""Passes on what a command prints, byte by byte, as it comes: into the record of the run, and to the terminal of the front."""

import fcntl
import os
import select
import threading
import time
from collections.abc import Callable
from typing import IO

_PORTION = 64 * 1024
_PATIENCE_S = 1.0  # with a pipe that others hold open when the command has ended, or that nobody reads when it is stopped


class Passing:
    """One stream of a command, read in a thread of its own: a terminal that takes nothing holds up the command, as ever.

    A reader that goes away is gone for the command, too: what it prints then ends it, as without tuilab. `on_data` hears what
    was printed.
    """

    def __init__(self, pipe: IO[bytes], record: int, target: int | None, on_data: Callable[[bytes], None]) -> None:
        self.trouble = ""  # why it is not passed on any more
        self._pipe = pipe
        self._record: int | None = record
        self._target = target
        self._on_data = on_data
        self._passed = 0
        self._waits_since: float | None = None  # for something to be printed
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def finish(self, is_stopped: Callable[[], bool]) -> None:
        """Wait until all that the command printed is passed on, however slowly it is read; of a run that is stopped not long.

        Processes that it left behind may hold the pipe open, or print for ever: they are not waited for.
        """
        most = self._passed + self._room() + _PORTION  # what of its own may still lie in the pipe
        stopped_at = None
        while self._thread.is_alive() and self._passed <= most:
            self._thread.join(0.02)
            now = time.monotonic()
            stopped_at = stopped_at or (now if is_stopped() else None)
            since = min(one for one in (self._waits_since, stopped_at, now) if one is not None)
            if now - since > _PATIENCE_S:
                return

    def _room(self) -> int:
        try:
            return fcntl.fcntl(self._pipe.fileno(), fcntl.F_GETPIPE_SZ)
        except (OSError, ValueError):  # it was closed
            return 0

    def _pass_on(self) -> None:
        while data := self._read():
            self._waits_since = None
            if self._record is not None and _write(self._record, data):
                self._record = None
            if self._target is not None and (problem := _write(self._target, data)):
                self._target = None
                if isinstance(problem, BrokenPipeError):
                    self._pipe.close()
                    return
                self.trouble = problem.strerror or str(problem)
            self._on_data(data)
            self._passed += len(data)

    def _read(self) -> bytes:
        self._waits_since = time.monotonic()
        return self._pipe.read(_PORTION)


def _write(target: int, data: bytes) -> OSError | None:
    """Write all of it; return why it is not taken any more. A terminal may be set so that it takes nothing at once."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            _wait_for_room(target)
        except OSError as problem:
            return problem
    return None


def _wait_for_room(target: int) -> None:
    room = select.poll()
    room.register(target, select.POLLOUT)
    room.poll()
