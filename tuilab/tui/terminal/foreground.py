"""Lends the terminal to a program, as a shell does."""

import os
import signal
import subprocess
from contextlib import suppress


def lend_terminal(process: "subprocess.Popen[bytes]") -> int:
    """Have a process, which has a group of its own, be the terminal's foreground until it ends; return its exit code.

    ^C and ^Z are for it alone. One that stops is continued, as there is no shell to go back to.
    """
    previous = signal.signal(
        signal.SIGTTOU, signal.SIG_IGN
    )  # else we could not take the terminal back
    tty = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            with suppress(OSError):  # it is over already
                os.tcsetpgrp(tty, process.pid)
                os.kill(process.pid, signal.SIGCONT)
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode
    finally:
        with suppress(OSError):  # the terminal is gone
            os.tcsetpgrp(tty, os.getpgrp())
        os.close(tty)
        signal.signal(signal.SIGTTOU, previous)
