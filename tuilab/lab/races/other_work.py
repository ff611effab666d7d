"""How much of the cores other processes use while a race goes on.

A thread that waits for a core may wait for another process of its own run, for example for the
workers of its DataLoader. That is what the arm does, and no disturbance of it.
"""

import os
import time
from collections.abc import Callable

from tuilab.probes.core_work import Work, read_work, usable_cores, use_between

_WINDOW_S = 0.25  # that a look covers at the least; a tick of the kernel is 10 ms
_SHORT_WINDOW_S = 0.05  # that is taken instead for a block whose thread had to wait


class OtherWork:
    """The work of other processes between one look and the next."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cores = usable_cores()
        self._last = self._read()
        self._share: float | None = None

    def look(self, window_s: float = _WINDOW_S) -> None:
        """Look again, if the last look was so long ago."""
        if self._last is not None and self._clock() - self._last.at < window_s:
            return  # before anything is read: a reading asks for every process of the run
        work = self._read()
        if work is None:
            return
        use = use_between(self._last, work)
        # Both are counted in ticks, so that their difference may come out a little below 0.
        self._share = None if use is None else round(max(use.others, 0.0) / len(self._cores), 3)
        self._last = work

    def share(self) -> float | None:
        """Return the share of the usable cores that others used around now; None if it is not known."""
        self.look(_SHORT_WINDOW_S)
        return self._share

    def _read(self) -> Work | None:
        return read_work(os.getpid(), self._cores)
