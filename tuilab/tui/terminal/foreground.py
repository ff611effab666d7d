"""Lend the terminal to a program, as a shell does."""

import os
import signal
import subprocess
from contextlib import suppress


def lend_terminal(process: "subprocess.Popen[bytes]") -> int:
    """Make a process the foreground of the terminal until it ends, and return its exit code.

    The process must have a process group of its own. Only this group gets ^C and ^Z. If the process
    stops, it is continued, because there is no shell to return to.
    """
    # If SIGTTOU were not ignored, taking the terminal back would stop this process.
    previous = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    tty = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            with suppress(OSError):  # the process has ended already
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
