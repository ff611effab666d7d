"""What the parts of the lab need of it: they write records through it, and know nothing else of it."""

from typing import Protocol

from tuilab.record.events import Event


class Recorder(Protocol):
    """As much of a lab as the meter of memory uses."""

    def record(self, event: Event) -> None: ...

    def log(self, step: int, *, arm: str, live_bytes: float) -> None: ...


class RaceRecorder(Protocol):
    """As much of a lab as a race uses."""

    repeat: int
    repeats: int

    @property
    def records_written(self) -> int: ...

    def record(self, event: Event) -> None: ...

    def progress(self, done: int, total: int, unit: str) -> None: ...

    def tell_holdings(self) -> None: ...
