"""Make a folder for unfinished files.

It is removed at the end, also if a signal ends the process, and at the latest by the next process.
"""

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
def scratch(parent: Path, mode: int = 0o700) -> Iterator[Path]:
    """Make a hidden folder in `parent` and yield it; files that are moved out of it stay.

    Folders that killed processes left there are removed first.
    """
    _remove_abandoned(parent)
    with _ending_in_order():
        folder, lock_fd = _make(parent, mode)
        try:
            yield folder
        finally:
            with suppress(OSError):
                filetree.remove(folder)
            os.close(lock_fd)


def _make(parent: Path, mode: int) -> tuple[Path, int]:
    """Make a folder and lock it; return it with the descriptor of the lock.

    Until it is locked, another process may take it for an abandoned one and remove it.
    """
    while True:
        folder = parent / f"{_PREFIX}{os.urandom(8).hex()}"
        folder.mkdir(mode)
        lock_fd = _open(folder)
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(lock_fd, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder, lock_fd
        os.close(lock_fd)


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders that no process holds the lock of: theirs was killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock_fd = _open(folder)
            try:
                fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                filetree.remove(folder)
            finally:
                os.close(lock_fd)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


class _EndedBySignal(BaseException):
    """A signal ends this process."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Within the block, let SIGTERM and SIGHUP end this process only after it is cleaned up.

    Signals with handlers of their own, and other threads than the main one, are left alone.
    """
    handled = []
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                handled.append(number)
    for number in handled:
        signal.signal(number, _end)
    try:
        yield
    except _EndedBySignal as ending:
        signal.signal(ending.number, signal.SIG_DFL)
        signal.raise_signal(ending.number)
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    raise _EndedBySignal(number)
