"""What a report on some runs consists of: an opening, sweeps, runs side by side, and each run by itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.catalogue.scenario import Scenario
from tuilab.reports.opening import Opening, opening_of
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.sweeps.sweep_summary import SweepSummary, group_by_sweep, summarise_sweep

_MOST_RUNS = 6  # that fit beside each other


@dataclass(frozen=True)
class Outline:
    """The parts of a report, but for the runs by themselves."""

    is_many: bool  # each run is one of many, and has a brief part
    opening: Opening | None  # None: there is one run, or the sweeps and groups have all runs
    sweeps: list[SweepSummary]
    groups: Sequence[Sequence[ReportedRun]]  # runs side by side


def outline_of(
    subjects: Sequence[ReportedRun],
    known: Sequence[Scenario] = (),
    groups: Sequence[Sequence[ReportedRun]] = (),
) -> Outline:
    """Return the parts of a report on some runs; `groups` are shown side by side instead of those that are found."""
    sweeps = [] if groups else group_by_sweep(subjects)
    in_parts = {id(subject) for sweep in sweeps for subject in sweep}
    chosen = groups or _groups([subject for subject in subjects if id(subject) not in in_parts])
    in_parts |= {id(subject) for group in chosen for subject in group}
    has_one_story = bool(in_parts) and all(
        id(subject) in in_parts for subject in subjects if subject.summary.run
    )
    is_many = len(subjects) != 1
    opening = opening_of(subjects, known) if is_many and not has_one_story else None
    return Outline(is_many, opening, [summarise_sweep(sweep) for sweep in sweeps], chosen)


def _groups(subjects: Sequence[ReportedRun]) -> list[list[ReportedRun]]:
    """Return the newest runs of each scenario that has several, the oldest of them first."""
    groups: dict[str, list[ReportedRun]] = {}
    for subject in sorted(subjects, key=lambda subject: subject.run_dir.name):
        if subject.summary.run:
            groups.setdefault(subject.name, []).append(subject)
    return [group[-_MOST_RUNS:] for group in groups.values() if len(group) > 1]
