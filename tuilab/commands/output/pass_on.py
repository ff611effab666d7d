"""Passes on what a command prints, byte by byte, as it comes: into the record of the run, and to the terminal of the front."""

import array
import fcntl
import os
import select
import termios
import threading
import time
from collections.abc import Callable
from typing import IO

_PORTION = 64 * 1024
_PATIENCE_S = 1.0  # with processes that the command left behind, and with a terminal that nobody reads after a stop
_TURN_S = 0.02


class Passing:
    """One stream of a command, read in a thread of its own: a terminal that takes nothing holds up the command, as ever.

    A reader that goes away is gone for the command, too: what it prints then ends it, as without tuilab. `on_data` hears what
    was printed.
    """

    def __init__(
        self, pipe: IO[bytes], record: int, target: int | None, on_data: Callable[[bytes], None]
    ) -> None:
        self.trouble = ""  # why it is not passed on any more
        self._pipe = pipe
        self._record: int | None = record
        self._target = target
        self._on_data = on_data
        self._passed = 0
        self._taken = 0  # bytes that were read, of which the last portion may not be passed on yet
        self._counting = threading.Lock()  # held while a portion is read and counted
        self._is_over = False  # what is printed from here on is not the command's
        self._news = select.poll()
        self._news.register(pipe, select.POLLIN)
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def finish(self, is_stopped: Callable[[], bool]) -> None:
        """Wait until all that the command printed is passed on, however slowly it is read; of a run that is stopped not long.

        A process that the command left behind may hold the pipe open, as `tee` in `> >(tee log)` does, or print for ever. It
        has a second in all, and a portion.
        """
        own_count = self._count_own()
        ended_at = time.monotonic()
        stopped_at: float | None = None
        while self._thread.is_alive():
            self._thread.join(_TURN_S)
            now_s = time.monotonic()
            if stopped_at is None and is_stopped():
                stopped_at = now_s
            if stopped_at is not None and now_s - stopped_at > _PATIENCE_S:
                break
            is_late = now_s - ended_at > _PATIENCE_S or self._passed > own_count + _PORTION
            if self._passed >= own_count and is_late:
                break
        self._is_over = True

    def _count_own(self) -> int:
        """Return how many bytes the command printed that has just ended: those that were read, and those in the pipe."""
        waiting = array.array("i", [0])
        with self._counting:
            try:
                fcntl.ioctl(self._pipe.fileno(), termios.FIONREAD, waiting)
            except (OSError, ValueError):  # it was closed
                return self._passed
            return self._taken + waiting[0]

    def _pass_on(self) -> None:
        while data := self._read():
            if self._is_over:
                return
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
        """Return the next portion; wait for it before the lock is taken, so that who counts never waits."""
        self._news.poll()
        with self._counting:
            data = self._pipe.read(_PORTION)
            self._taken += len(data)
        return data


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
