"""Ctrl-C, heeded when it can be: not in the middle of an import, and not while the last one is answered.

In an import it may be lost, and leave a module locked for every other thread; in the middle of an answer it would take the
place of that answer.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN_S = 0.02

_is_answering = False  # whether a Ctrl-C has to wait for the answer to the last one
_takes_turns = False


def heed() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, unless it is to be ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.signal(signal.SIGINT, _interrupt)


@contextmanager
def one_by_one() -> Iterator[Callable[[], None]]:
    """Within, a Ctrl-C that comes after another waits until the given function is called: that one was answered."""
    global _is_answering, _takes_turns

    def be_ready() -> None:
        global _is_answering
        _is_answering = False

    _takes_turns = True
    try:
        yield be_ready
    finally:
        _is_answering = _takes_turns = False


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt what runs, or ask again soon: an exception inside the machinery of imports may fall into a callback."""
    global _is_answering
    if _is_answering or _is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        _is_answering = _takes_turns
        raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
