"""How far a scenario is: told by it at every step, and written ten times a second."""

import time

from tuilab.lab.given import whole, words
from tuilab.record.events import Progressed

_PERIOD_S = 0.1


class Progress:
    """When it was written last how far the scenario is."""

    def __init__(self) -> None:
        self._written = 0.0

    def due(self, done: int, total: int, unit: str) -> Progressed | None:
        """Return what is to be written at this moment, if it is time again or all is done."""
        done, total, unit = whole("done", done), whole("total", total), words("unit", unit)
        now = time.monotonic()
        if now - self._written < _PERIOD_S and done < total:
            return None
        self._written = now
        return Progressed(done=done, total=total, unit=unit)
