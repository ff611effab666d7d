"""Gives the terminal back when the screens die without doing it themselves: a tiny process that waits for their end."""

import contextlib
import os
import select
import signal
import termios
from typing import Any

# What was begun is ended first: CAN ends a sequence, ST a string; some terminals know no other end of the one, or of the other.
# Then everything that the screens may have switched on: keyboard protocol, mouse, focus, paste, resize reports, other screen.
RESTORE = b"\x18\x1b\\\x1b[<u" + b"".join(
    b"\x1b[?%dl" % mode for mode in (1000, 1002, 1003, 1006, 1015, 1016, 1004, 2004, 2026, 2048, 1049)
) + b"\x1b[?7h\x1b[?25h\x1b[0m"  # fmt: skip

_TAKEN, _FREE = b"+", b"-"
_PATIENCE_MS = 60_000  # for a terminal that takes nothing


def open_again(terminal: int) -> int:
    """Open a terminal once more, so that writing never waits; after `su` its name belongs to somebody else."""
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(os.ttyname(terminal), flags)
    except OSError:
        return os.open("/dev/tty", flags)


class Guardian:
    """The process that watches over a terminal; to be made while there is one thread."""

    def __init__(self, terminal: int) -> None:
        self._is_taken = False
        settings = termios.tcgetattr(terminal)
        own_fd = open_again(terminal)
        ear, self._mouth = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._mouth)
            _wait_and_restore(own_fd, ear, settings)
        os.close(ear)
        os.close(own_fd)

    def note(self, is_taken: bool) -> None:
        """Take note whether the screens have the terminal, or whoever had it before."""
        self._is_taken = is_taken
        with contextlib.suppress(OSError):
            os.write(self._mouth, _TAKEN if is_taken else _FREE)

    def dismiss(self) -> None:
        """Have the guardian do what is left to do; nobody waits for a terminal that takes nothing."""
        os.close(self._mouth)
        if not self._is_taken:
            with contextlib.suppress(
                ChildProcessError
            ):  # where the end of children is ignored, there is nothing to wait for
                os.waitpid(self._pid, 0)


def _wait_and_restore(terminal: int, ear: int, settings: Any) -> None:
    """Wait for the end of the screens, and give the terminal back if they still had it."""
    try:
        os.setsid()  # no signal of the terminal is meant for us
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(ear, 0)
        os.dup2(terminal, 1)
        os.closerange(2, os.sysconf("SC_OPEN_MAX"))
        last = _FREE
        while word := os.read(0, 1):
            last = word
        if last == _TAKEN:
            if (
                not termios.tcgetattr(1)[3] & termios.ISIG
            ):  # else a shell was faster, and has set modes of its own
                termios.tcsetattr(1, termios.TCSANOW, settings)
            _write(RESTORE)
    finally:
        os._exit(0)


def _write(data: bytes) -> None:
    """Write to a terminal that may take little at a time, or nothing for long."""
    room = select.poll()
    room.register(1, select.POLLOUT)
    while data and room.poll(_PATIENCE_MS):
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(1, data) :]
