"""Ctrl-C, heeded when it can be: not in the middle of an import, and not while the last one is answered.

In an import it may be lost, and leave a module locked for every other thread; in the middle of an answer it would take the
place of that answer. It is the first module that is loaded, and it loads little: until then Ctrl-C is Python's.
SIGTERM and SIGHUP end a process. Where that would end its runs, too, they are taken for a Ctrl-C.
"""

import os
import signal
import stat
import time
from types import FrameType

from tuilab import first_process

_AGAIN_S = 0.02
_OF_THE_DEAD = ("/weakref.py", "/_weakrefset.py")
_PATIENCE_S = 5.0  # what takes longer hangs, and is interrupted after all


class OneByOne:
    """Within, a Ctrl-C that comes after another, or after `wait`, is heeded from `be_ready` on."""

    is_open = False
    waits_until = 0.0
    asked: int = signal.SIGINT  # what is asked again

    def __enter__(self) -> "OneByOne":
        OneByOne.is_open = True
        return self

    @staticmethod
    def be_ready() -> None:
        OneByOne.waits_until = 0.0

    @staticmethod
    def wait() -> None:
        OneByOne.waits_until = time.monotonic() + _PATIENCE_S if OneByOne.is_open else 0.0

    def __exit__(self, *_: object) -> None:
        OneByOne.is_open = False
        OneByOne.waits_until = 0.0


def heed() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, unless it is to be ignored; the end of a container, too."""
    numbers = (
        (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if first_process.takes_all_along()
        else (signal.SIGINT,)
    )
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(OneByOne.asked))
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt what runs, or ask again soon, where an exception would be lost or spoil something."""
    if number == signal.SIGHUP:
        _let_go_of_terminal()
    if time.monotonic() < OneByOne.waits_until or _is_deaf(frame):
        OneByOne.asked = number
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        OneByOne.wait()
        raise KeyboardInterrupt


def _let_go_of_terminal() -> None:
    """Have what is still to be said go nowhere: to write to a terminal that has gone would end the answer."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(fd).st_mode):
            os.dup2(null, fd)


def _is_deaf(frame: FrameType | None) -> bool:
    """Say whether one is in the machinery of imports, or in what is called as an object goes: both drop what is raised."""
    while frame is not None:
        code = frame.f_code
        is_of_the_dead = code.co_name == "__del__" or code.co_filename.endswith(_OF_THE_DEAD)
        if is_of_the_dead or code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
