"""The baseline of a scenario, which its other runs are held against: the newest in the folder of runs with the tag `baseline`.

A tag, so that whoever has the run has it, too: it goes into an archive with it, and `tuilab note` puts it on and takes it off.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from tuilab.errors import UsageError
from tuilab.runs import notes
from tuilab.runs.command_line import hint
from tuilab.runs.last_verdicts import runs_in
from tuilab.runs.run_name import RunName
from tuilab.text import show

TAG = "baseline"


def is_baseline(run_dir: Path) -> bool:
    """Say whether a run has the tag; most runs have no notes at all, and nothing is read of them."""
    return os.path.lexists(run_dir / notes.FILE) and TAG in notes.read(run_dir).tags


def baseline_of(run_dir: Path) -> Path | None:
    """Return the baseline of a run's scenario, which may be the run itself; None where there is none."""
    return next(_tagged(run_dir), None)


def needed_baseline(run_dir: Path) -> Path:
    """Return the run that one which is named alone is compared with; UsageError where there is none."""
    found, scenario = baseline_of(run_dir), show(RunName(run_dir.name).scenario, 60)
    if found is None:
        step = hint(run_dir.parent, "note", "RUN", "--tag", TAG)
        raise UsageError(f"{scenario} has no baseline run to compare with; name a second run, or tag a baseline first: {step}")
    if found == run_dir:
        raise UsageError(f"{RunName(run_dir.name).id} is itself the baseline of {scenario}; name a second run")
    return found


def pin(run_dir: Path) -> str:
    """Make a run the baseline of its scenario, in the place of the one before, and say so."""
    before = [one for one in _tagged(run_dir) if one != run_dir]
    notes.add(run_dir, tags=[TAG])
    for one in before:
        notes.add(one, untags=[TAG])
    name = RunName(run_dir.name)
    instead = f", instead of {RunName(before[0].name).id}" if before else ""
    return f"{name.id} is the baseline of {name.scenario}{instead}"


def unpin(run_dir: Path) -> str:
    """Make a run a baseline no more, and say so."""
    notes.add(run_dir, untags=[TAG])
    name = RunName(run_dir.name)
    return f"{name.id} is no longer the baseline of {name.scenario}"


def _tagged(run_dir: Path) -> Iterator[Path]:
    """Return the runs of a run's scenario that have the tag, newest first."""
    root, scenario = run_dir.parent, RunName(run_dir.name).scenario
    runs = (root / run for run in runs_in(os.fspath(root)) if RunName(run).scenario == scenario)
    return (one for one in runs if is_baseline(one))
