"""Gives the terminal back when the screens die without doing it themselves: a tiny process that waits for their end."""

import contextlib
import os
import signal
import termios
from collections.abc import Callable
from typing import Any

# Everything that the screens may have switched on: keyboard protocol, mouse, focus, paste, resize reports, other screen.
RESTORE = b"\x1b[<u" + b"".join(
    b"\x1b[?%dl" % mode for mode in (1000, 1002, 1003, 1006, 1015, 1016, 1004, 2004, 2026, 2048, 1049)
) + b"\x1b[?7h\x1b[?25h\x1b[0m"  # fmt: skip


def guard(terminal: int) -> Callable[[], None]:
    """Fork the guardian of a terminal; return what dismisses it. To be called while there is one thread."""
    before = termios.tcgetattr(terminal)
    name = os.ttyname(terminal)
    ear, mouth = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(mouth)
        _wait_and_restore(name, ear, before)
    os.close(ear)

    def dismiss() -> None:
        with contextlib.suppress(OSError):
            os.write(mouth, b".")
        os.close(mouth)
        os.waitpid(pid, 0)

    return dismiss


def _wait_and_restore(terminal: str, ear: int, before: Any) -> None:
    """Wait for the word that all is well, or for the end of who would say it."""
    try:
        os.setsid()  # no signal of the terminal is meant for us
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(ear, 0)
        os.closerange(1, 256)  # an ssh session must not wait for us
        if os.read(0, 1) == b"":
            ours = os.open(terminal, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)  # one that takes nothing must not hold us
            termios.tcsetattr(ours, termios.TCSANOW, before)
            os.write(ours, RESTORE)
    finally:
        os._exit(0)
