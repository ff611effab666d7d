"""The parts of Lab that other modules use to write records."""

from typing import Protocol

from tuilab.record.events import Event


class Recorder(Protocol):
    """The part of Lab that the memory meter uses."""

    def record(self, event: Event) -> None: ...

    def log(self, step: int, *, arm: str, live_bytes: float) -> None: ...


class RaceRecorder(Protocol):
    """The part of Lab that a race uses."""

    repeat: int
    repeats: int

    @property
    def records_written(self) -> int: ...

    def record(self, event: Event) -> None: ...

    def progress(self, done: int, total: int, unit: str) -> None: ...

    def tell_holdings(self) -> None: ...
