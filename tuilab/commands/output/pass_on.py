"""Pass on what a command prints, byte by byte, as it comes.

The output goes into the record of the run, and to the terminal of the client.
"""

import array
import fcntl
import os
import select
import termios
import threading
import time
from collections.abc import Callable
from typing import IO

_PORTION = 64 * 1024  # bytes, as many as a pipe holds
# How long to wait for processes that the command left behind, and for a terminal that nobody reads
# after a stop.
_PATIENCE_S = 1.0
_TURN_S = 0.02  # between two looks whether the thread has ended


class Passing:
    """One stream of a command, read in a thread of its own.

    The command sees the terminal as it would without tuilab. If the terminal takes nothing, the
    command has to wait. If the reader of the output goes away, the pipe of the command is closed,
    so that its next output ends the command. `on_data` gets what was printed.
    """

    def __init__(
        self, pipe: IO[bytes], record: int, target: int | None, on_data: Callable[[bytes], None]
    ) -> None:
        self.trouble = ""  # why the output is not passed on any more
        self._pipe = pipe
        self._record: int | None = record
        self._target = target
        self._on_data = on_data
        self._passed = 0
        self._taken = 0  # bytes that were read; the last portion may not be passed on yet
        self._counting = threading.Lock()  # held while a portion is read and counted
        self._is_over = False  # after that, only other processes print
        self._news = select.poll()
        self._news.register(pipe, select.POLLIN)
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def finish(self, is_stopped: Callable[[], bool]) -> None:
        """Wait until all that the command printed is passed on, however slowly it is read.

        Call this when the command has ended. If the run is stopped, wait at most a second longer. A
        process that the command left behind may hold the pipe open, as `tee` in `> >(tee log)`
        does, or print for ever. For such a process, the wait ends after one second or after one
        more portion.
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
        """Return how many bytes the command, which has just ended, has printed.

        These are the bytes that were read, and the bytes that are in the pipe.
        """
        waiting = array.array("i", [0])
        with self._counting:
            try:
                fcntl.ioctl(self._pipe.fileno(), termios.FIONREAD, waiting)
            except (OSError, ValueError):  # the pipe was closed
                return self._passed
            return self._taken + waiting[0]

    def _pass_on(self) -> None:
        """Pass on what is printed until the pipe is closed or `finish` is done; this is the thread.

        If the target takes no more, that is noted in `trouble`. If its reader is gone, the pipe is
        closed.
        """
        while True:
            data = self._read()
            if not data or self._is_over:
                return
            if self._record is not None and _write(self._record, data):
                self._record = None
            if self._target is not None:
                problem = _write(self._target, data)
                if problem is not None:
                    self._target = None
                    if isinstance(problem, BrokenPipeError):
                        self._pipe.close()
                        return
                    self.trouble = problem.strerror or str(problem)
            self._on_data(data)
            self._passed += len(data)

    def _read(self) -> bytes:
        """Return the next portion.

        Wait for the portion before taking the lock, so that `_count_own` never waits for it.
        """
        self._news.poll()
        with self._counting:
            data = self._pipe.read(_PORTION)
            self._taken += len(data)
        return data


def _write(target: int, data: bytes) -> OSError | None:
    """Write all of the data; return the error if the target does not take any more.

    A terminal may be set to non-blocking. If it has no room, wait for room.
    """
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
