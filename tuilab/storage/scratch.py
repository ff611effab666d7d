"""A folder for what is not whole yet: it goes when we are done, when somebody ends us, and at the latest next time."""

import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from tuilab.storage import filetree

_PREFIX = ".tuilab-scratch-"


@contextmanager
def scratch(beside: Path, mode: int = 0o700) -> Iterator[Path]:
    """Make a hidden folder below `beside` and yield it; what is moved out of it stays."""
    _remove_abandoned(beside)
    with _ending_in_order():
        folder, held = _make(beside, mode)
        try:
            yield folder
        finally:
            with suppress(OSError):
                filetree.remove(folder)
            os.close(held)


def _make(beside: Path, mode: int) -> tuple[Path, int]:
    """Make a folder and hold it; until it is held, another process may take it for one that was left."""
    while True:
        folder = beside / f"{_PREFIX}{os.urandom(8).hex()}"
        folder.mkdir(mode)
        held = _open(folder)
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(held, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder, held
        os.close(held)


def _remove_abandoned(beside: Path) -> None:
    """Remove what was left by a process that is gone: nobody holds it."""
    for folder in beside.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            held = _open(folder)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                filetree.remove(folder)
            finally:
                os.close(held)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


class _Ended(BaseException):
    """Somebody ends this process."""


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Within, SIGTERM and SIGHUP end this process when all is cleared away; where others see to them, these do."""
    both = (
        (signal.SIGTERM, signal.SIGHUP)
        if threading.current_thread() is threading.main_thread()
        else ()
    )
    mine = [number for number in both if signal.getsignal(number) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, _end)
    try:
        yield
    except _Ended as ended:
        signal.signal(ended.args[0], signal.SIG_DFL)
        signal.raise_signal(ended.args[0])
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    raise _Ended(number)
