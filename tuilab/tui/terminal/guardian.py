"""Restore the terminal if the screens die without doing so.

The guardian is a tiny process that waits for the end of the screens.
"""

import contextlib
import os
import select
import signal
import termios
from typing import Any

# First end whatever the screens had begun to send. CAN ends a sequence, ST ends a string. Both are
# needed: for some terminals a sequence has no other end, for others a string has no other end.
# Then switch off everything that the screens may have switched on: keyboard protocol, mouse, focus,
# paste, resize reports, alternate screen.
_MODES = (1000, 1002, 1003, 1006, 1015, 1016, 1004, 2004, 2026, 2048, 1049)
_SWITCH_OFF = b"".join(b"\x1b[?%dl" % mode for mode in _MODES)
RESTORE = b"\x18\x1b\\\x1b[<u" + _SWITCH_OFF + b"\x1b[?7h\x1b[?25h\x1b[0m"

_TAKEN, _FREE = b"+", b"-"
_PATIENCE_MS = 60_000  # wait for a terminal that accepts nothing


def open_again(terminal: int) -> int:
    """Open a terminal a second time, so that writing to it never blocks.

    After `su` the device of the terminal belongs to another user, and we may not open it by name.
    Then /dev/tty is opened instead.
    """
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(os.ttyname(terminal), flags)
    except OSError:
        return os.open("/dev/tty", flags)


class Guardian:
    """The process that guards a terminal. Create it while this process has only one thread."""

    def __init__(self, terminal: int) -> None:
        """Fork the process, which keeps the settings that the terminal has now."""
        self._is_taken = False
        settings = termios.tcgetattr(terminal)
        own_fd = open_again(terminal)
        read_fd, self._write_fd = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._write_fd)
            _wait_and_restore(own_fd, read_fd, settings)  # does not return
        os.close(read_fd)
        os.close(own_fd)

    def note(self, is_taken: bool) -> None:
        """Note whether the screens use the terminal, or have given it back."""
        self._is_taken = is_taken
        state = _TAKEN if is_taken else _FREE
        with contextlib.suppress(OSError):
            os.write(self._write_fd, state)

    def dismiss(self) -> None:
        """Make the guardian end; if the terminal is still taken, the guardian restores it first.

        We wait for the guardian only if the terminal is not taken. Otherwise the terminal may
        accept nothing, and would hold us up.
        """
        os.close(self._write_fd)
        if not self._is_taken:
            # If SIGCHLD is ignored, there is no child left to wait for.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)


def _wait_and_restore(terminal: int, read_fd: int, settings: Any) -> None:
    """Wait for the end of the screens, and restore the terminal if they had not given it back."""
    try:
        os.setsid()  # signals of the terminal do not reach the guardian
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(read_fd, 0)
        os.dup2(terminal, 1)
        os.closerange(2, os.sysconf("SC_OPEN_MAX"))
        last_state = _FREE
        while True:
            state = os.read(0, 1)
            if not state:
                break  # the screens have ended
            last_state = state
        if last_state == _TAKEN:
            # If ISIG is set, a shell was faster and has already set its own modes.
            local_modes = termios.tcgetattr(1)[3]
            if not local_modes & termios.ISIG:
                termios.tcsetattr(1, termios.TCSANOW, settings)
            _write(RESTORE)
    finally:
        os._exit(0)


def _write(data: bytes) -> None:
    """Write to a terminal that may accept few bytes at a time, or nothing for a long time."""
    room = select.poll()
    room.register(1, select.POLLOUT)
    while data and room.poll(_PATIENCE_MS):
        with contextlib.suppress(BlockingIOError):
            written_count = os.write(1, data)
            data = data[written_count:]
