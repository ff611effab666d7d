"""Folds the records of a tuning."""

from tuilab.record import events
from tuilab.record.folding.limits import keep
from tuilab.record.summary import RunSummary


def treatment_planned(summary: RunSummary, stream: str, event: events.TreatmentPlanned) -> None:
    summary.tuning.treatments[event.arm] = event


def tuning_planned(summary: RunSummary, stream: str, event: events.TuningPlanned) -> None:
    summary.tuning.plan = event


def treatment_tried(summary: RunSummary, stream: str, event: events.TreatmentTried) -> None:
    """Keep the last record of each arm: a later one says more, or why the arm has ended."""
    summary.tuning.tried[event.arm] = event
    summary.tuning.tries += 1


def tuning_combined(summary: RunSummary, stream: str, event: events.TuningCombined) -> None:
    keep(summary.tuning.combinations, event)
