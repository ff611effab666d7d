"""Passes on what a command prints, byte by byte, as it comes: into the record of the run, and to the terminal of the front."""

import os
import threading
from collections.abc import Callable
from typing import IO

_PORTION = 64 * 1024
_PATIENCE_S = 1.0  # with a pipe that others hold open when the command has ended


class Passing:
    """One stream of a command, read in a thread of its own: a terminal that takes nothing holds up the command, as ever.

    `on_data` hears what was printed.
    """

    def __init__(self, pipe: IO[bytes], targets: list[int], on_data: Callable[[bytes], None]) -> None:
        self._pipe = pipe
        self._targets = targets
        self._on_data = on_data
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until all is passed on; a process that the command left behind may hold its end open for ever."""
        self._thread.join(_PATIENCE_S)

    def _pass_on(self) -> None:
        while data := self._pipe.read(_PORTION):
            for target in list(self._targets):
                if not _write(target, data):
                    self._targets.remove(target)
            self._on_data(data)


def _write(target: int, data: bytes) -> bool:
    """Write all of it; say whether somebody takes it."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(target, view) :]
    except OSError:
        return False
    return True
