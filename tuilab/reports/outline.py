"""The parts of a report on some runs: an opening, sweeps, runs side by side, and each run."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from tuilab.catalogue.scenario import Scenario
from tuilab.reports.opening import Opening, opening_of
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.sweeps.sweep_summary import SweepSummary, group_by_sweep, summarise_sweep

_MOST_RUNS = 6  # that fit side by side


@dataclass(frozen=True)
class Outline:
    """The parts of a report, without the runs by themselves."""

    is_many: bool  # each run is one of many, so it has a brief page
    opening: Opening | None  # None: there is one run, or each run is in a sweep or a group
    sweeps: list[SweepSummary]
    groups: Sequence[Sequence[ReportedRun]]  # runs side by side


def outline_of(
    subjects: Sequence[ReportedRun],
    scenarios: Sequence[Scenario] = (),
    groups: Sequence[Sequence[ReportedRun]] = (),
) -> Outline:
    """Return the parts of a report on some runs.

    If `groups` are given, they are shown side by side, and neither sweeps nor other groups.
    """
    sweeps: list[list[ReportedRun]] = []
    if not groups:
        sweeps = group_by_sweep(subjects)
        in_sweeps = _find_ids(sweeps)
        single_runs = [subject for subject in subjects if id(subject) not in in_sweeps]
        groups = _group_by_scenario(single_runs)
    is_many = len(subjects) != 1
    opening = None
    if is_many and not _are_all_in([*sweeps, *groups], subjects):
        opening = opening_of(subjects, scenarios)
    summaries = [summarise_sweep(sweep) for sweep in sweeps]
    return Outline(is_many, opening, summaries, groups)


def _find_ids(parts: Sequence[Sequence[ReportedRun]]) -> set[int]:
    """Return `id(subject)` of the runs in some sweeps or groups."""
    return {id(subject) for subject in chain.from_iterable(parts)}


def _are_all_in(parts: Sequence[Sequence[ReportedRun]], subjects: Sequence[ReportedRun]) -> bool:
    """Return whether each run that left a record is in a sweep or a group."""
    ids = _find_ids(parts)
    if not ids:
        return False
    return all(id(subject) in ids for subject in subjects if subject.summary.run)


def _group_by_scenario(subjects: Sequence[ReportedRun]) -> list[list[ReportedRun]]:
    """Return the newest runs of each scenario that has several, the oldest of them first."""
    groups: dict[str, list[ReportedRun]] = {}
    for subject in sorted(subjects, key=lambda subject: subject.run_dir.name):
        if subject.summary.run:
            groups.setdefault(subject.name, []).append(subject)
    return [group[-_MOST_RUNS:] for group in groups.values() if len(group) > 1]
