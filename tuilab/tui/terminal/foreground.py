"""Lend the terminal to a program, as a shell does."""

import os
import signal
import subprocess
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import IO

_PATIENCE_S = 3.0  # after SIGHUP an editor saves a copy of unsaved text
_KILLED_PATIENCE_S = 0.3  # a process that hangs in a system call does not end
_POLL_S = 0.02


class Foreground:
    """Lends the terminal to one program at a time, until the program or the screens end."""

    def __init__(self) -> None:
        self._is_ending = False  # a signal ends the screens

    def heed_signal(self, number: int, frame: FrameType | None) -> None:
        """Stop waiting for the program, because this signal ends the screens."""
        self._is_ending = True

    def run(self, words: Sequence[str], stdin: "IO[bytes] | None" = None) -> int:
        """Run a program until it ends, and return its exit code; 0 if a signal ends the screens.

        The program has a process group of its own. Only this group gets ^C and ^Z. The terminal
        gets its modes back, because a program that is killed does not restore them.
        """
        tty = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        try:
            modes = termios.tcgetattr(tty)
            process = subprocess.Popen(words, stdin=stdin, process_group=0)
            # If SIGTTOU were not ignored, taking the terminal back would stop this process.
            previous = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            try:
                return self._lend(tty, process)
            except InterruptedError:
                _end(process)
                return 0
            finally:
                with suppress(OSError, termios.error):  # the terminal is gone
                    os.tcsetpgrp(tty, os.getpgrp())
                    termios.tcsetattr(tty, termios.TCSANOW, modes)
                signal.signal(signal.SIGTTOU, previous)
        finally:
            os.close(tty)

    def _lend(self, tty: int, process: "subprocess.Popen[bytes]") -> int:
        """Make a process the foreground of the terminal until it ends, and return its exit code.

        If the process stops, continue it, because there is no shell to return to.
        """
        while True:
            with suppress(OSError):  # the process has ended already
                os.tcsetpgrp(tty, process.pid)
                os.killpg(process.pid, signal.SIGCONT)
            status = self._wait(process.pid)
            if not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode

    def _wait(self, pid: int) -> int:
        """Return the status of a process when it stops or ends.

        Raise InterruptedError if a signal ends the screens. The process is polled, because a signal
        that another thread receives does not interrupt a wait.
        """
        while not self._is_ending:
            changed_pid, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
            if changed_pid:
                return status
            time.sleep(_POLL_S)
        raise InterruptedError


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and its group as a closed terminal does; kill what ignores that."""
    _signal_group(process, signal.SIGHUP)
    _signal_group(process, signal.SIGCONT)  # a stopped process could not handle SIGHUP
    if not _has_ended(process, _PATIENCE_S):
        _signal_group(process, signal.SIGKILL)
        _has_ended(process, _KILLED_PATIENCE_S)


def _has_ended(process: "subprocess.Popen[bytes]", patience_s: float) -> bool:
    """Return whether the whole group of a process ends within some seconds.

    An editor may be a child of a script that has ended.
    """
    deadline = time.monotonic() + patience_s
    process.poll()
    while _signal_group(process, 0):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
        process.poll()  # a process that nobody waited for would still count as running
    return True


def _signal_group(process: "subprocess.Popen[bytes]", number: int) -> bool:
    """Send a signal to the group of a process; return whether the group exists."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # for example `sudoedit`, which runs as another user
        return True
    return True
