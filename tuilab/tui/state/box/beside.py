"""Does something slow in a thread that nobody waits for when the screens close."""

from collections.abc import Callable
from contextlib import suppress
from threading import Thread


def begin(work: Callable[[], None]) -> None:
    """Do something beside the main path; what it posts to screens that have closed meanwhile is lost."""
    Thread(target=_do, args=(work,), daemon=True).start()


def _do(work: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the screens are gone, and what handled their messages
        work()
