"""Checks of tuilab itself: config file, calibration, active runs, and leftovers of lost runs."""

import os
import time
from pathlib import Path

from tuilab import config
from tuilab.doctor import Box, DoctorFinding, failed, passed, unknown, warn
from tuilab.errors import TuilabError
from tuilab.judging import calibration, calibration_file
from tuilab.record import presence
from tuilab.record.origin.imported import is_imported
from tuilab.record.states import RunState
from tuilab.runs import store
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import Index
from tuilab.storage import places, user_data
from tuilab.text.display import join_first, plural

_STALE_S = 90 * 86400
_LOOKED_AT = 200  # runs, the newest


def calibrated(box: Box) -> DoctorFinding:
    """Check whether the CPU was calibrated, and warn if that was more than 90 days ago."""
    saved = calibration_file.load()
    lines = calibration.describe_trials(saved.trials_of_method)
    step = "run `tuilab calibrate` (2 minutes)"
    complaint = user_data.complaint_about(places.calibration_file())
    if complaint:
        return warn(complaint, step)
    if not lines:
        return unknown(
            "not calibrated yet; how often verdicts about time are wrong here is unknown", step
        )
    if saved.wall_s is not None:
        age_s = time.time() - saved.wall_s
        if age_s > _STALE_S:
            return warn(f"calibrated {age_s / 86400:.0f} days ago; {lines[-1]}", step)
    return passed(lines[-1])


def configured(box: Box) -> DoctorFinding:
    """Check whether the config file is valid; without one, all settings have their defaults."""
    if not os.path.lexists(places.config_file()):
        return passed("no config file: all settings have their defaults")
    try:
        settings = config.checked()
    except TuilabError as problem:
        return failed(
            str(problem),
            "correct it, then run `tuilab config validate`; most subcommands fail until it is"
            " valid",
        )
    return passed(f"{places.config_file()}: {plural(len(settings), 'setting')}")


def going_on(box: Box) -> DoctorFinding:
    """Warn if a run is active: it disturbs measurements."""
    entries = _read_entries()
    running = [store.short_id(entry.run) for entry in entries if entry.is_running]
    if running:
        runs = plural(len(running), "run")
        return warn(
            f"{runs} active ({join_first(running, 5)}): measurements are disturbed now",
            f"wait, or stop it: tuilab stop {running[0]}",
        )
    recorded = len(store.list_runs(Path(places.runs_folder())))
    return passed(f"no run is active ({recorded} recorded)")


def orphans(box: Box) -> DoctorFinding:
    """Check for processes that a dead supervisor left behind."""
    root = Path(places.runs_folder())
    lost = []
    for entry in _read_entries():
        if entry.state == RunState.LOST and not is_imported(root / entry.run):
            lost.append(entry.run)
    if not lost:
        return passed("no run was lost")
    remaining = [store.short_id(run) for run in lost[:20] if presence.marked(run)]
    if remaining:
        return warn(
            f"processes of lost runs are still running: {', '.join(remaining)}",
            f"end them: tuilab stop {remaining[0]}",
        )
    return passed("no process of a lost run is still running")


def _read_entries() -> list[RunEntry]:
    """Return the entries of the newest runs."""
    root = Path(places.runs_folder())
    index = Index(root)
    return [index.entry(folder.name) for folder in store.list_runs(root)[:_LOOKED_AT]]


CHECKS = {
    "lab.config": configured,
    "lab.calibration": calibrated,
    "lab.runs": going_on,
    "lab.orphans": orphans,
}
