"""Ctrl-C, heeded between imports: in the middle of one it may be lost, and leave a module locked for every other thread."""

import signal
from types import FrameType

_AGAIN_S = 0.02


def heed() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, unless it is to be ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt what runs, or ask again soon: an exception inside the machinery of imports may fall into a callback."""
    if _is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
