"""Which run another one is held against: the baseline of its scenario, else the newest comparable one before it."""

import os
from itertools import islice
from pathlib import Path

from tuilab.record.states import RunState
from tuilab.runs.beside.baseline import baseline_of
from tuilab.runs.last_verdicts import runs_in
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.run_name import RunName, by_time

_LOOKED_AT = 30  # runs of the scenario


def held_against(run_dir: Path, ledger: LedgerCache) -> tuple[Path | None, bool]:
    """Return that run, and whether it is the baseline; None where there is none, or the run is the baseline and the first."""
    found = baseline_of(run_dir)
    if found is not None and found != run_dir:
        return found, True
    return comparable_before(run_dir, ledger), False


def comparable_before(run_dir: Path, ledger: LedgerCache) -> Path | None:
    """Return the newest run of the scenario before a run that succeeded, and was as quick: that has other sizes."""
    root, run, scenario = run_dir.parent, run_dir.name, RunName(run_dir.name).scenario
    every = (one for one in runs_in(os.fspath(root)) if RunName(one).scenario == scenario)
    before = (one for one in every if by_time(one) < by_time(run))
    is_quick = ledger.entry(run_dir).quick
    looked_at = (ledger.entry(root / one) for one in islice(before, _LOOKED_AT))
    return next((root / one.run for one in looked_at if one.state == RunState.SUCCEEDED and one.quick == is_quick), None)
