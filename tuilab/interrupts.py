"""Ctrl-C, heeded when it can be: not in the middle of an import, and not while the last one is answered.

In an import it may be lost, and leave a module locked for every other thread; in the middle of an answer it would take the
place of that answer. It is the first module that is loaded, and it loads little: until then Ctrl-C is Python's.
"""

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_AGAIN_S = 0.02


class OneByOne:
    """Within, a Ctrl-C that comes after another waits for `be_ready`: that one was answered."""

    is_open = False
    is_answering = False

    def __enter__(self) -> "OneByOne":
        OneByOne.is_open = True
        return self

    def be_ready(self) -> None:
        OneByOne.is_answering = False

    def __exit__(self, *_: object) -> None:
        OneByOne.is_open = OneByOne.is_answering = False


def heed() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, unless it is to be ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: "FrameType | None") -> None:
    """Interrupt what runs, or ask again soon: an exception inside the machinery of imports may fall into a callback."""
    if OneByOne.is_answering or _is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        OneByOne.is_answering = OneByOne.is_open
        raise KeyboardInterrupt


def _is_importing(frame: "FrameType | None") -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
