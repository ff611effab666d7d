"""Delay Ctrl-C while it would do harm: during an import, and while the last one is answered.

During an import it may be lost, and leave a module locked for every other thread. During an answer
it would replace that answer. This module is loaded first, and it loads little: until then Python
handles Ctrl-C. SIGTERM and SIGHUP end a process. If that would also end its runs, they count as
Ctrl-C.
"""

import os
import signal
import stat
import time
from types import FrameType

from tuilab import first_process

_RETRY_S = 0.02
# Python calls these as an object is freed, or within a fork, and drops what they raise.
_CALLED_BY_PYTHON = ("/weakref.py", "/_weakrefset.py", "/logging/__init__.py")
_PATIENCE_S = 5.0  # an answer that takes longer hangs, and is interrupted after all


class OneByOne:
    """A block in which a second Ctrl-C, or one after `wait`, waits until `be_ready`."""

    is_open = False
    waits_until = 0.0  # by the monotonic clock
    delayed_signal: int = signal.SIGINT

    def __enter__(self) -> "OneByOne":
        OneByOne.is_open = True
        return self

    @staticmethod
    def be_ready() -> None:
        """Let Ctrl-C raise KeyboardInterrupt at once."""
        OneByOne.waits_until = 0.0

    @staticmethod
    def wait() -> None:
        """Delay Ctrl-C from now on until `be_ready`, or for five seconds at most.

        Outside a `with` block, nothing is delayed.
        """
        OneByOne.waits_until = 0.0
        if OneByOne.is_open:
            OneByOne.waits_until = time.monotonic() + _PATIENCE_S

    def __exit__(self, *_: object) -> None:
        OneByOne.is_open = False
        OneByOne.waits_until = 0.0


def heed() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, unless the parent process had it ignored.

    In the first process of a container, SIGTERM and SIGHUP do the same.
    """
    numbers = [signal.SIGINT]
    if first_process.is_container_main():
        numbers += (signal.SIGTERM, signal.SIGHUP)
    signal.signal(signal.SIGALRM, _raise_delayed_signal)
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _raise_delayed_signal(number: int, frame: FrameType | None) -> None:
    signal.raise_signal(OneByOne.delayed_signal)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; if that would be lost or do harm, try again soon."""
    if number == signal.SIGHUP:
        _leave_terminal()
    if time.monotonic() < OneByOne.waits_until or _would_be_lost(frame):
        OneByOne.delayed_signal = number
        signal.setitimer(signal.ITIMER_REAL, _RETRY_S)
    else:
        OneByOne.wait()
        raise KeyboardInterrupt


def _leave_terminal() -> None:
    """Redirect the terminal to /dev/null: to write to one that is closed would end the answer."""
    null_fd = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(fd).st_mode):
            os.dup2(null_fd, fd)


def _would_be_lost(frame: FrameType | None) -> bool:
    """Return whether an exception would be dropped here.

    This is so in an import, as an object is freed, and in the hooks of a fork.
    """
    while frame is not None:
        code = frame.f_code
        is_cleanup = code.co_name == "__del__" or code.co_filename.endswith(_CALLED_BY_PYTHON)
        if is_cleanup or code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
