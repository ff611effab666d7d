"""Write a report on runs into the current folder, as `tuilab report` does."""

import os
from collections.abc import Sequence
from pathlib import Path

from tuilab.catalogue.scenario import Scenario
from tuilab.errors import CannotRecord
from tuilab.runs.command_line import hint
from tuilab.runs.run_name import RunName
from tuilab.text.display import plural, show


def export(run_dirs: Sequence[Path], scenarios: Sequence[Scenario]) -> str:
    """Write the report and return a sentence that says where it is.

    Raise TuilabError if it cannot be written.
    """
    from tuilab.reports import write_report

    try:
        target = os.path.join(os.getcwd(), _name(run_dirs))
    except FileNotFoundError as problem:
        step = hint(run_dirs[0].parent, "report", "RUN", "-o", "FILE")
        raise CannotRecord(
            f"the folder that tuilab was started in no longer exists; use {step}"
        ) from problem
    runs = write_report.read_subjects(run_dirs)
    write_report.write(runs, target, write_report.check_target(target), scenarios=scenarios)
    return f"wrote {show(target, 300)} ({plural(len(run_dirs), 'run')})"


def _name(run_dirs: Sequence[Path]) -> str:
    """Return the file name of a report: with the scenario of the run, or the number of runs."""
    first = RunName(run_dirs[0].name)
    if len(run_dirs) > 1:
        subject = f"{len(run_dirs)}-runs"
    else:
        subject = first.scenario[:60] or "run"
    return f"tuilab-{subject}-{first.id}.html"
