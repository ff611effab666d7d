"""Choose the run that represents a scenario, and the run that another run is compared with.

`docs/history.md` explains both rules to users. Kept free of slow imports: `tuilab list` loads it.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tuilab.errors import UsageError
from tuilab.record.states import BROKEN_STATES, RunState
from tuilab.record.verdicts import FAILED, QUEUED, RUNNING, WORST_FIRST, Verdict
from tuilab.runs import folders, notes
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import Index
from tuilab.runs.run_name import RunName, by_time, is_watched
from tuilab.text.display import show

if TYPE_CHECKING:
    from pathlib import Path

    from tuilab.record.events import RunStarted

TAG = "baseline"
# Runs of a scenario among which its representative is searched, newest first. A point of a sweep
# with other values does not count.
_MAX_CANDIDATES = 100
_MAX_EARLIER = 300  # earlier runs of a scenario among which a comparable one is searched
# A run that cannot be read may have succeeded.
_FAILED_STATES = BROKEN_STATES - {RunState.UNREADABLE}
_ENDED_STATES = _FAILED_STATES | {RunState.SUCCEEDED, RunState.STOPPED}
# How well a run represents its scenario, the best rank last; 0 is the rank of a run that cannot.
_NOT_TESTABLE, _STOPPED, _OTHER_PARAMETERS, _QUICK, _WITH_DEFAULTS = range(1, 6)


class ScenarioStatus(NamedTuple):
    """The status of a scenario, for lists."""

    verdict: str = ""  # of the run that represents it; or FAILED, running, queued
    differs_by: str = ""  # how that run differs from a usual one: `quick`, `rows=5`, `stopped`


class Reference(NamedTuple):
    """The run that another run is compared with."""

    run_dir: "Path"
    is_baseline: bool


def is_with_defaults(run: "RunEntry | RunStarted", free: Collection[str] = ("device",)) -> bool:
    """Return whether a run had the default parameters and was not quick.

    The free parameters may have any value.
    """
    return not run.quick and set(run.changed) <= set(free)


def has_other_values(point: Iterable[str], changed: Collection[str]) -> bool:
    """Return whether a run is a point of a sweep with values that differ from the defaults.

    The device may differ.
    """
    return any(name in changed and name != "device" for name in point)


def is_comparable(other: RunEntry, run: RunEntry) -> bool:
    """Return whether another run of the scenario succeeded, and both were quick or neither.

    A point of a sweep with other values is comparable only with runs of the same sweep.
    """
    if other.state != RunState.SUCCEEDED or other.quick != run.quick:
        return False
    return other.sweep == run.sweep or not has_other_values(other.point, other.changed)


def verdict_of(entry: RunEntry) -> str:
    """Return the one verdict of a run: the worst of its claims, FAILED, running or queued.

    A stopped run has the verdicts that it reached. The result is empty for a run that cannot be
    read, for a state that only a newer tuilab knows, and for a point of a sweep with other values.
    """
    if entry.is_running:
        return QUEUED if entry.is_waiting else RUNNING
    if has_other_values(entry.point, entry.changed):
        return ""
    if entry.state in _FAILED_STATES:
        return FAILED
    return worst([verdict for _, verdict in entry.claims])


def worst(verdicts: Collection[str]) -> str:
    """Return the worst of some verdicts; empty if there are none.

    NOT TESTABLE HERE is the best one: it counts only if nothing could be tested.
    """
    for verdict in WORST_FIRST:
        if verdict in verdicts:
            return verdict
    return ""


def representative_run(newest_first: Iterable[RunEntry]) -> RunEntry | None:
    """Return the run that represents a scenario, from the runs of the scenario; None if none does.

    It is the newest finished run with the default parameters. If there is none, the newest quick
    run represents the scenario, then the newest run with other parameters, then the newest stopped
    one. A run in which nothing could be tested comes last.
    """
    best = max(_candidates(newest_first), key=_rank, default=None)
    if best is None or _rank(best) == 0:
        return None
    return best


def status_of(newest_first: Iterable[RunEntry]) -> ScenarioStatus:
    """Return what lists show of a scenario.

    It is that a new run is running or queued, else the verdict of the run that represents it.
    """
    candidates = list(_candidates(newest_first))
    states = [verdict_of(entry) for entry in candidates if entry.is_running]
    for state in (RUNNING, QUEUED):
        if state in states:
            return ScenarioStatus(state)
    best = representative_run(candidates)
    if best is None:
        return ScenarioStatus()
    return ScenarioStatus(verdict_of(best), _differs_by(best))


def statuses(index: Index) -> dict[str, ScenarioStatus]:
    """Return the status of each scenario that has runs in a folder, and save what was read."""
    runs = _by_scenario(folders.run_names(index.root))
    statuses = {scenario: status_of(map(index.entry, names)) for scenario, names in runs.items()}
    index.save()
    return statuses


def representative_runs(index: Index) -> dict[str, str]:
    """Return, by scenario, the run that represents it, else its newest run.

    The scenario with the newest run comes first.
    """
    newest_first, _ = folders.list_folders(index.root)
    runs = {}
    for scenario, names in _by_scenario(newest_first).items():
        best = representative_run(map(index.entry, names))
        runs[scenario] = best.run if best else names[0]
    index.save()
    return runs


def runs_to_report(index: Index) -> list[str]:
    """Return the run that represents each scenario, in the order of the catalogue.

    Runs of scenarios that the catalogue does not have come last.
    """
    # imported here: `tuilab list` has its own list of scenarios
    from tuilab.catalogue import catalog

    runs = representative_runs(index)
    # Watched commands claim nothing.
    unwatched = {scenario: run for scenario, run in runs.items() if not is_watched(run)}
    if unwatched:
        runs = unwatched
    listed = [scenario.id for scenario in catalog.load() if scenario.id in runs]
    unlisted = sorted(runs.keys() - set(listed))
    return [runs[scenario] for scenario in listed + unlisted]


def reference_for(run_dir: "Path", index: Index) -> Reference | None:
    """Return the run that a run is compared with; None if there is none.

    It is the baseline of its scenario, else the newest earlier comparable run. The baseline itself
    is compared with the newest earlier comparable run. Entries that were read are saved in the
    index.
    """
    root = run_dir.parent
    index = index.in_folder(root)
    baseline = next(_tagged(run_dir), run_dir.name)
    if baseline != run_dir.name:
        return Reference(root / baseline, is_baseline=True)
    entry = index.entry(run_dir.name)
    earlier = [run for run in _same_scenario(run_dir) if by_time(run) < by_time(run_dir.name)]
    reference = None
    for run in earlier[:_MAX_EARLIER]:
        if is_comparable(index.entry(run), entry):
            reference = Reference(root / run, is_baseline=False)
            break
    index.save()
    return reference


def needed_reference(run_dir: "Path", index: Index) -> "Path":
    """Return the run that a run is compared with; UsageError if there is none."""
    reference = reference_for(run_dir, index)
    if reference is not None:
        return reference.run_dir
    from tuilab.runs.command_line import hint  # imported here: `tuilab list` gives no hints

    name = RunName(run_dir.name)
    step = hint(run_dir.parent, "note", "RUN", "--tag", TAG)
    raise UsageError(
        f"no run to compare {show(name.id)} with: {show(name.scenario, 60)} has no other baseline "
        f"and no comparable earlier run; name a second run, or tag a baseline: {step}"
    )


def is_baseline(run_dir: "Path") -> bool:
    """Return whether a run is tagged as a baseline. Nothing is read of a run without notes."""
    return os.path.lexists(f"{run_dir}/{notes.FILE}") and TAG in notes.read(run_dir).tags


def pin(run_dir: "Path") -> str:
    """Make a run the baseline of its scenario, and return a sentence that says so.

    The previous baseline loses its tag afterwards. If that fails, both have the tag, and the newest
    run counts.
    """
    previous = [run for run in _tagged(run_dir) if run != run_dir.name]
    notes.add(run_dir, tags=[TAG])
    for run in previous:
        notes.add(run_dir.parent / run, untags=[TAG])
    name = RunName(run_dir.name)
    sentence = f"{name.id} is the baseline of {name.scenario}"
    if previous:
        sentence += f", instead of {RunName(previous[0]).id}"
    return sentence


def unpin(run_dir: "Path") -> str:
    """Remove the tag from a run, and return a sentence that says so."""
    notes.add(run_dir, untags=[TAG])
    name = RunName(run_dir.name)
    return f"{name.id} is no longer the baseline of {name.scenario}"


def _rank(entry: RunEntry) -> int:
    """Return how well a run represents its scenario; 0 if it does not."""
    if entry.state not in _ENDED_STATES or has_other_values(entry.point, entry.changed):
        return 0
    if verdict_of(entry) == Verdict.NOT_TESTABLE:
        return _NOT_TESTABLE
    if entry.state == RunState.STOPPED:
        return _STOPPED
    if is_with_defaults(entry):
        return _WITH_DEFAULTS
    return _QUICK if entry.quick else _OTHER_PARAMETERS


def _candidates(newest_first: Iterable[RunEntry]) -> Iterator[RunEntry]:
    """Yield the runs of a scenario up to the first one with the defaults, or up to a limit."""
    remaining = _MAX_CANDIDATES
    for entry in newest_first:
        yield entry
        rank = _rank(entry)
        if rank:
            remaining -= 1
        if rank == _WITH_DEFAULTS or not remaining:
            return


def _differs_by(entry: RunEntry) -> str:
    """Return how a run differs from a usual one: quick, other parameters, or stopped."""
    words = []
    if entry.quick:
        words.append("quick")
    elif not is_with_defaults(entry):
        from tuilab.catalogue.params import spell  # imported here: most runs have the defaults

        for name, value in entry.changed.items():
            if name != "device":
                words.append(f"{name}={spell(value)}")
    if entry.state == RunState.STOPPED:
        words.append(entry.state)
    return show(", ".join(words), 100)


def _by_scenario(runs: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the names of runs by scenario; those of one scenario keep their order."""
    by_scenario: dict[str, list[str]] = {}
    for run in runs:
        by_scenario.setdefault(RunName(run).scenario, []).append(run)
    by_scenario.pop("", None)  # runs in whose name there is no scenario
    return by_scenario


def _same_scenario(run_dir: "Path") -> list[str]:
    """Return the runs of the scenario of a run, newest first."""
    scenario = RunName(run_dir.name).scenario
    runs = folders.run_names(str(run_dir.parent))
    return [run for run in runs if RunName(run).scenario == scenario]


def _tagged(run_dir: "Path") -> Iterator[str]:
    """Yield the tagged runs of a run's scenario, newest first; the first one is the baseline."""
    return (run for run in _same_scenario(run_dir) if is_baseline(run_dir.parent / run))
