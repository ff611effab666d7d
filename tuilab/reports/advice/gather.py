"""Read the runs that may say which values of variables won on this machine."""

from collections.abc import Sequence
from pathlib import Path

from tuilab.catalogue.scenario import Scenario
from tuilab.probes.same_box import box_facts
from tuilab.record import presence
from tuilab.record.origin.imported import is_imported
from tuilab.record.states import RunState
from tuilab.reports.advice.advised import Advice, advise, raced_variables
from tuilab.reports.reported_run import read_each
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import Index
from tuilab.runs.representative import is_with_defaults
from tuilab.runs.run_name import RunName
from tuilab.runs.store import list_runs
from tuilab.text.display import plural

_MAX_LISTED = 2000  # the newest runs of a folder
_MAX_READ = 3  # runs of a scenario


def find_racing_runs(
    root: Path, scenarios: Sequence[Scenario], ranks: int = 0, cache: Index | None = None
) -> list[Path]:
    """Return the runs that may say which values won, and save what was read of them in the index.

    Of each scenario these are the newest that seem to count. If there are none, it is the newest
    run, so that the advice can say why that run does not count.
    """
    if cache is None:
        cache = Index(root)
    folders = list_runs(root)[:_MAX_LISTED]
    racing = []
    for scenario in scenarios:
        if not raced_variables(scenario, ranks):
            continue
        own = [folder for folder in folders if RunName(folder.name).scenario == scenario.id]
        likely = []
        for folder in own:
            if _seems_to_count(cache.entry(folder.name), scenario, ranks):
                likely.append(folder)
            if len(likely) == _MAX_READ:
                break
        racing += likely or own[:1]
    cache.save()
    return racing


def advise_from_runs(
    folders: Sequence[Path],
    scenarios: Sequence[Scenario],
    ranks: int = 0,
    cache: Index | None = None,
) -> tuple[Advice, list[str]]:
    """Return the advice from runs of this machine, and a sentence about each kind of run left out.

    Imported runs are left out, and of several runs those that cannot be read.
    """
    own = [folder for folder in folders if not is_imported(folder)]
    imported = len(folders) - len(own)
    notes = []
    if imported:
        runs = plural(imported, "imported run")
        notes.append(f"left out {runs}: only runs of this machine count")
    subjects = read_each(own, notes.append, cache)
    hosts = {presence.host_name()}
    for subject in subjects:
        run = subject.summary.run
        if run and presence.is_of_this_box(run.supervisor):
            hosts.add(run.supervisor.host)
    return advise(subjects, box_facts(), hosts, ranks=ranks, scenarios=scenarios), notes


def _seems_to_count(entry: RunEntry, scenario: Scenario, ranks: int) -> bool:
    """Return whether a run succeeded with default options, for this number of ranks.

    It may have been given a GPU.
    """
    defaults = {param.name: param.default for param in scenario.params}
    run_ranks = entry.changed.get("ranks", defaults.get("ranks", ranks))
    is_plain = is_with_defaults(entry, free=("ranks", "device"))
    return is_plain and run_ranks == ranks and entry.state == RunState.SUCCEEDED
