"""Which runs go on in a folder, whoever started them: looked up so cheaply that it can be done every second."""

from pathlib import Path

from tuilab.runs import store
from tuilab.runs.last_verdicts import runs_in
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.listing.entry import Entry

_NEWEST = 100  # runs that are looked at: an older one is over


class GoingOn:
    """Asks the memory of runs, and remembers when the folder was changed last."""

    def __init__(self, cache: LedgerCache) -> None:
        self._cache = cache
        self._root = Path(cache.root)
        self._changed_at: float | None = None

    def has_changed(self) -> bool:
        """Say whether runs may have come or gone since the last look."""
        return store.changed_at(self._root) != self._changed_at

    def look(self) -> list[Entry]:
        """Return the runs that go on, the newest first."""
        self._changed_at = store.changed_at(self._root)
        newest = runs_in(self._cache.root)[:_NEWEST]
        return [entry for run in newest if (entry := self._cache.entry(self._root / run)).is_running]
