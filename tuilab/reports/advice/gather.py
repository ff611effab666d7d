"""Reads the runs that may say which values of variables won on this box."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from tuilab.catalogue.scenario import Scenario
from tuilab.probes.same_box import box_facts
from tuilab.record import presence
from tuilab.record.origin.imported import is_imported
from tuilab.record.states import RunState
from tuilab.reports.advice.advised import Advice, advise, raced_by
from tuilab.reports.reported_run import read_each
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import Index
from tuilab.runs.representative import is_with_defaults
from tuilab.runs.run_name import RunName
from tuilab.runs.store import list_runs
from tuilab.text.display import plural

_LOOKED_AT = 2000  # runs of a folder, the newest
_READ = 3  # of a scenario


def racing(
    root: Path, known: Sequence[Scenario], ranks: int = 0, cache: Index | None = None
) -> list[Path]:
    """Return the runs that may say which values won: of each scenario the newest that seem to count, or else the newest."""
    cache, runs = cache or Index(root), list_runs(root)[:_LOOKED_AT]
    found = []
    for scenario in (one for one in known if raced_by(one, ranks)):
        folders = [folder for folder in runs if RunName(folder.name).scenario == scenario.id]
        likely = (
            folder
            for folder in folders
            if _seems_to_count(cache.entry(folder.name), scenario, ranks)
        )
        found += list(islice(likely, _READ)) or folders[:1]
    cache.save()
    return found


def of_runs(
    folders: Sequence[Path], known: Sequence[Scenario], ranks: int = 0, cache: Index | None = None
) -> tuple[Advice, list[str]]:
    """Return what follows from runs of this box, and a sentence about each or all that were left out."""
    own = [folder for folder in folders if not is_imported(folder)]
    left = len(folders) - len(own)
    notes = (
        [f"left out {plural(left, 'imported run')}: only runs of this machine count"]
        if left
        else []
    )
    subjects = read_each(own, notes.append, cache)
    starts = [subject.summary.run for subject in subjects if subject.summary.run]
    hosts = {
        presence.host_name(),
        *(run.supervisor.host for run in starts if presence.is_of_this_box(run.supervisor)),
    }
    return advise(subjects, box_facts(), hosts, ranks=ranks, known=known), notes


def _seems_to_count(entry: RunEntry, scenario: Scenario, ranks: int) -> bool:
    """Say whether a run succeeded, was whole and asked for nothing but a GPU, and for as many ranks as are asked about."""
    raced_for = next((param.default for param in scenario.params if param.name == "ranks"), ranks)
    asked = {"ranks": raced_for, **entry.changed}
    is_plain = is_with_defaults(entry, free=("ranks", "device")) and asked["ranks"] == ranks
    return is_plain and entry.state == RunState.SUCCEEDED
