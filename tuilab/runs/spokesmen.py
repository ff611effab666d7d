"""Which runs speak for a box, when a report or a comparison is on all of it."""

from pathlib import Path

from tuilab.record.states import RunState
from tuilab.runs.ledger import Entry, from_name
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.store import list_runs

_LOOKED_AT = 2000  # runs of a folder, the newest
_AS_IT_IS = 2


def spokesmen(root: Path) -> dict[str, Path]:
    """Return, by scenario, the run that speaks for it, the newest scenario first.

    It is the newest that succeeded with the scenario's defaults; if there is none, the newest that succeeded; else the newest.
    """
    best: dict[str, tuple[int, Path]] = {}
    cache = LedgerCache(root)
    for folder in list_runs(root)[:_LOOKED_AT]:
        scenario = from_name(folder.name).scenario
        if best.get(scenario, (-1,))[0] == _AS_IT_IS:
            continue
        rank = _rank(cache.entry(folder))
        if rank > best.get(scenario, (-1,))[0]:
            best[scenario] = rank, folder
    cache.keep()
    return {scenario: folder for scenario, (_, folder) in best.items()}


def _rank(entry: Entry) -> int:
    return (1 if entry.changed else _AS_IT_IS) if entry.state == RunState.SUCCEEDED else 0
