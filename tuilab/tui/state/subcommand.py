"""A subcommand of tuilab that a page of the screens runs, and what it has printed so far."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread

TUILAB = (sys.executable, "-P", "-m", "tuilab")
_CHUNK = 65536  # bytes
_MAX_BYTES = 1 << 20  # of its output that are kept


class Subcommand:
    """Runs in a session of its own: Ctrl-C does not reach it, and it may outlive the screens.

    Its stdout is a terminal of the same size, so that it prints and checks the same as for a user.
    Its lines are as wide as the page. Its stderr is a file in memory: once the screens have closed,
    writing to their terminal fails, and that would end a calibration.
    """

    def __init__(
        self, words: Sequence[str], width: int, terminal_size: tuple[int, int] = (80, 24)
    ) -> None:
        """Start `tuilab` with these words. `width` are the columns of the page.

        Raise OSError if the process cannot be started.
        """
        self.words = list(words)
        self.was_stopped = False
        self._began_s = time.monotonic()
        self._ended_s: float | None = None
        self._stdout = b""
        self._stderr = os.memfd_create("stderr")
        self._terminal, terminal_of_child = pty.openpty()
        os.set_blocking(self._terminal, False)
        columns, rows = terminal_size
        window_size = struct.pack("HHHH", rows, columns, 0, 0)  # the zeros are the size in pixels
        fcntl.ioctl(terminal_of_child, termios.TIOCSWINSZ, window_size)
        try:
            self._process = subprocess.Popen(
                [*TUILAB, *words],
                stdin=subprocess.DEVNULL,
                stdout=terminal_of_child,
                stderr=self._stderr,
                env=_environment(width),
                start_new_session=True,
            )
        except OSError:
            os.close(self._terminal)
            os.close(self._stderr)
            raise
        finally:
            os.close(terminal_of_child)

    @property
    def is_running(self) -> bool:
        if self._process.poll() is None:
            return True
        if self._ended_s is None:
            self._ended_s = time.monotonic()
        return False

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    @property
    def elapsed_s(self) -> float:
        """The seconds since the start; after the end was noticed, those until then."""
        end_s = self._ended_s
        if end_s is None:
            end_s = time.monotonic()
        return end_s - self._began_s

    def read(self) -> str:
        """Return everything that it has printed so far, the messages on stderr last.

        Of a very long output, only the end is kept.
        """
        # OSError: there is no more output now, the program has ended, or `close` was called.
        with suppress(OSError):
            chunk = os.read(self._terminal, _CHUNK)
            while chunk:
                self._stdout = (self._stdout + chunk)[-_MAX_BYTES:]
                chunk = os.read(self._terminal, _CHUNK)
        messages = b""
        if self._stderr >= 0:
            messages = os.pread(self._stderr, _MAX_BYTES, 0)
        text = (self._stdout + messages).decode(errors="replace")
        return text.replace("\r\n", "\n").rstrip("\n")

    def stop(self) -> None:
        """End it cleanly, as Ctrl-C does."""
        self.was_stopped = True
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGINT)

    def close(self) -> None:
        """Close its output. Anything that it prints from now on is lost."""
        if self.is_running:
            # Without a thread that waits, the process would stay as a zombie.
            Thread(target=self._process.wait, daemon=True).start()
        for descriptor in (self._terminal, self._stderr):
            if descriptor >= 0:
                os.close(descriptor)
        self._terminal = -1
        self._stderr = -1


def _environment(width: int) -> dict[str, str]:
    """Return the environment of the subcommand, whose lines are as wide as the page.

    It has Python's variables of this process, without those set in C since (see `arrays.py`).
    """
    return {**os.environ, "COLUMNS": str(max(width, 20))}
