"""Run a race without a run: record its events, and gather the evidence from them."""

import time
from typing import Any

from tuilab.judging.evidence import Evidence, gather_evidence
from tuilab.record import events
from tuilab.record.folding.fold import fold


class RaceRecorder:
    """As much of a lab as a race uses."""

    repeat, repeats, records_written = 0, 1, 0

    def __init__(self) -> None:
        self.events: list[events.Record] = []

    def record(self, event: events.Event) -> None:
        event.t = time.monotonic_ns()
        self.events.append(event)  # type: ignore[arg-type]

    def progress(self, done: int, total: int, unit: str) -> None:
        pass

    def tell_holdings(self) -> None:
        pass

    def of(self, kind: type[events.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def gather_from_recorder(claim: events.ClaimDeclared, lab: RaceRecorder) -> Evidence:
    """Return the evidence of a race in the only process of a run."""
    started = events.WorkerStarted(writer="worker-0", pid=1, start=1, repeat=0)
    records: list[tuple[str, events.Record]] = [("supervisor", started)]
    records += [("worker-0", event) for event in lab.events]
    evidence = gather_evidence(claim, fold(records))
    assert evidence is not None
    return evidence
