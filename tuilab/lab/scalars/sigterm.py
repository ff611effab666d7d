"""What is done before SIGTERM ends a scenario, which has no say in it."""

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable
from importlib import import_module

_AGAIN_S = 0.005
_signals = import_module("_signal")  # what `signal` asks, before it looks for a member of an enum: for a function in vain


def before_sigterm(act: Callable[[], bool]) -> None:
    """Have `act` called before SIGTERM ends this process; where it returns False, it is called again in a moment.

    A scenario that handles the signal itself, from before or from now on, does. One that keeps its main thread in a call of C
    is ended by the SIGKILL that follows.
    """
    if _signals.getsignal(signal.SIGTERM) != signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        return
    owner = os.getpid()

    def send_again() -> None:
        time.sleep(_AGAIN_S)
        os.kill(owner, signal.SIGTERM)

    def end(number: int, frame: object) -> None:
        if os.getpid() == owner and not act():
            _thread.start_new_thread(send_again, ())  # a thread of `threading` waits for locks that this may have interrupted
            return
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
