"""Folds the records of a tuning."""

from msgspec.structs import replace

from tuilab.record import events
from tuilab.record.folding.limits import keep
from tuilab.record.summary import RunSummary

_NOT_COMPARED = "NOT COMPARED"
# What a process of an arm has measured; a later record of the arm may not have it.
_MEASURED = ("did", "step_s", "ratio", "peak_bytes", "base_peak_bytes", "graphs", "compile_s")


def treatment_planned(summary: RunSummary, stream: str, event: events.TreatmentPlanned) -> None:
    summary.tuning.treatments[event.arm] = event


def tuning_planned(summary: RunSummary, stream: str, event: events.TuningPlanned) -> None:
    summary.tuning.plan = event


def treatment_tried(summary: RunSummary, stream: str, event: events.TreatmentTried) -> None:
    """Keep what the processes of an arm have shown: a later record adds to an earlier one."""
    tuning = summary.tuning
    if _is_of_process(event):
        tuning.tries += 1
    earlier = tuning.tried.get(event.arm)
    if earlier is None:
        tuning.tried[event.arm] = event
        return
    added = {}
    for name in _MEASURED:
        if not getattr(event, name):
            added[name] = getattr(earlier, name)
    tuning.tried[event.arm] = replace(event, **added)


def _is_of_process(event: events.TreatmentTried) -> bool:
    """Say whether a record is about a process that has ended.

    A treatment may also be ruled out without a further process, for example by the budget.
    """
    has_measured = event.step_s is not None or event.peak_bytes is not None
    return has_measured or event.outcome != _NOT_COMPARED


def tuning_combined(summary: RunSummary, stream: str, event: events.TuningCombined) -> None:
    keep(summary.tuning.combinations, event)
