"""Shows a text in the user's pager, which has the terminal meanwhile."""

import os
import shlex
import signal
import subprocess
import tempfile
from contextlib import suppress

from tuilab.text import show


def show_in_pager(text: str) -> str:
    """Run $PAGER, else `less`, on a text that is safe to show; return a sentence where that could not be done."""
    asked = os.environ.get("PAGER") or "less"
    with tempfile.TemporaryFile() as file:
        file.write(text.encode(errors="replace"))
        file.seek(0)
        try:
            process = subprocess.Popen(shlex.split(asked), stdin=file, process_group=0)
        except (OSError, ValueError, IndexError) as problem:
            return f"the pager {show(asked, 60)} cannot be started ({show(problem, 100)}); set PAGER to one that can"
        code = _lend_terminal(process)
    return f"the pager {show(asked, 60)} ended with {code}" if code > 0 else ""


def _lend_terminal(process: "subprocess.Popen[bytes]") -> int:
    """Have a process be the terminal's foreground, as a shell does, until it ends: Ctrl-C is for it alone.

    One that stops is continued, as there is no shell to go back to.
    """
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # else we could not take the terminal back
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
        os.tcsetpgrp(tty, os.getpgrp())
        os.close(tty)
        signal.signal(signal.SIGTTOU, before)
