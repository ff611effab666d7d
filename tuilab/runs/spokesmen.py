"""Which runs speak for a box, when a report or a comparison is on all of it."""

from pathlib import Path

from tuilab.catalogue import catalog
from tuilab.record.states import RunState
from tuilab.record.verdicts import Verdict
from tuilab.runs import store
from tuilab.runs.last_verdicts import is_off, verdict_of
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.listing.entry import Entry, from_name
from tuilab.runs.run_name import is_watched

_LOOKED_AT = 2000  # runs of a folder, the newest
_UNTESTED, _OTHERWISE, _QUICK, _AS_IT_IS = range(1, 5)


def spokesmen(root: Path, cache: LedgerCache | None = None) -> dict[str, Path]:
    """Return, by scenario, the run that speaks for it, the newest scenario first.

    It is the newest that succeeded with the scenario's defaults, on whichever device, a whole one before a quick one; if there
    is none, the newest that succeeded, but for points of sweeps with other values; then one in which nothing could be tested;
    else the newest.
    """
    best: dict[str, tuple[int, Path]] = {}
    cache = cache or LedgerCache(root)
    for folder in store.list_runs(root)[:_LOOKED_AT]:
        scenario = from_name(folder.name).scenario
        if best.get(scenario, (-1,))[0] == _AS_IT_IS:
            continue
        rank = _rank(cache.entry(folder))
        if rank > best.get(scenario, (-1,))[0]:
            best[scenario] = rank, folder
    cache.keep()
    return {scenario: folder for scenario, (_, folder) in best.items()}


def in_order(root: Path, cache: LedgerCache | None = None) -> list[Path]:
    """Return the run that speaks for every scenario, in the order of the catalogue; others come last."""
    found = spokesmen(root, cache)
    runs = {name: run for name, run in found.items() if not is_watched(run.name)} or found  # those claim nothing
    if not runs:
        store.find("last", root)  # which says that there are none
    places = {scenario.id: at for at, scenario in enumerate(catalog.load())}
    return [runs[name] for name in sorted(runs, key=lambda name: (places.get(name, len(places)), name))]


def _rank(entry: Entry) -> int:
    if entry.state != RunState.SUCCEEDED or is_off(entry.point, entry.changed):
        return 0
    if verdict_of(entry) == Verdict.NOT_TESTABLE:
        return _UNTESTED
    return _OTHERWISE if entry.changed.keys() - {"device"} else _QUICK if entry.quick else _AS_IT_IS
