"""Gives the terminal back when the screens die without doing it themselves: a tiny process that waits for their end."""

import contextlib
import os
import select
import signal
import termios
from collections.abc import Callable
from typing import Any

# What was begun is ended first: CAN ends a sequence, ST a string; some terminals know no other end of the one, or of the other.
# Then everything that the screens may have switched on: keyboard protocol, mouse, focus, paste, resize reports, other screen.
RESTORE = b"\x18\x1b\\\x1b[<u" + b"".join(
    b"\x1b[?%dl" % mode for mode in (1000, 1002, 1003, 1006, 1015, 1016, 1004, 2004, 2026, 2048, 1049)
) + b"\x1b[?7h\x1b[?25h\x1b[0m"  # fmt: skip


_PATIENCE_MS = 60_000  # for a terminal that takes nothing


def open_again(terminal: int) -> int:
    """Open a terminal once more, so that writing never waits; after `su` its name belongs to somebody else."""
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(os.ttyname(terminal), flags)
    except OSError:
        return os.open("/dev/tty", flags)


def guard(terminal: int) -> Callable[[bool], None]:
    """Fork the guardian of a terminal; return what dismisses it, told whether the terminal is as it was.

    To be called while there is one thread.
    """
    before = termios.tcgetattr(terminal)
    ours = open_again(terminal)
    ear, mouth = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(mouth)
        _wait_and_restore(ours, ear, before)
    os.close(ear)
    os.close(ours)

    def dismiss(is_given_back: bool) -> None:
        with contextlib.suppress(OSError):
            os.write(mouth, b"." if is_given_back else b"!")
        os.close(mouth)
        if is_given_back:
            with contextlib.suppress(ChildProcessError):  # where the end of children is ignored, there is nothing to wait for
                os.waitpid(pid, 0)

    return dismiss


def _wait_and_restore(terminal: int, ear: int, before: Any) -> None:
    """Wait for the word that all is well, or for the end of who would say it."""
    try:
        os.setsid()  # no signal of the terminal is meant for us
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(ear, 0)
        os.dup2(terminal, 1)
        os.closerange(2, os.sysconf("SC_OPEN_MAX"))
        word = os.read(0, 1)
        if word == b"!" or (not word and _are_screens_open(1)):
            termios.tcsetattr(1, termios.TCSANOW, before)
            _write(RESTORE)
    finally:
        os._exit(0)


def _write(rest: bytes) -> None:
    """Write to a terminal that may take little at a time, or nothing for long."""
    room = select.poll()
    room.register(1, select.POLLOUT)
    while rest and room.poll(_PATIENCE_MS):
        with contextlib.suppress(BlockingIOError):
            rest = rest[os.write(1, rest) :]


def _are_screens_open(terminal: int) -> bool:
    """Whether the keys that make signals are off; else a shell has the terminal: we are suspended, or not yet open."""
    return not termios.tcgetattr(terminal)[3] & termios.ISIG
