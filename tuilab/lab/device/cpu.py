"""The host as a device: it has done what it was told when a call returns."""

import contextlib
from contextlib import AbstractContextManager
from typing import Any

from tuilab.lab.device.asked import Clock, Held


class Cpu:
    """The host: what it was told is done when the call returns."""

    type = "cpu"
    index = None
    uuid = ""

    def wait(self) -> None:
        pass

    def selected(self) -> AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def make_ready(self) -> None:
        pass

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    def stream_ns(self) -> int | None:
        return None

    def is_idle(self) -> bool:
        return True

    def delay(self, nanoseconds: float, clock: Clock) -> None:
        until = clock() + nanoseconds
        while clock() < until:  # sleeping would give the core away
            pass

    def is_capturing(self) -> bool:
        return False

    def held(self) -> Held | None:
        return None

    def reset_peak(self) -> None:
        pass
