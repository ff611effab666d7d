"""Which runs go on in a folder, whoever started them: looked up so cheaply that it can be done every second."""

import os
import time
from pathlib import Path

from tuilab.runs import ledger, store
from tuilab.runs.ledger import Entry

_NEWEST = 100  # runs that are looked at: an older one is over


class GoingOn:
    """Remembers which runs are over, and when the folder was changed last."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._over: set[str] = set()
        self._changed_at: float | None = None

    def has_changed(self) -> bool:
        """Say whether runs may have come or gone since the last look."""
        return store.changed_at(self._root) != self._changed_at

    def look(self) -> list[Entry]:
        """Return the runs that go on, the newest first."""
        self._changed_at = store.changed_at(self._root)
        return [entry for run in self._newest() if run not in self._over and (entry := self._read(run)).is_running]

    def _read(self, run: str) -> Entry:
        entry = ledger.read(self._root / run)
        is_newborn = entry.started_s is not None and abs(time.time() - entry.started_s) < 2 * ledger.NEWBORN_S
        if not entry.is_running and not is_newborn:  # a newborn may have written nothing yet
            self._over.add(run)
        return entry

    def _newest(self) -> list[str]:
        try:
            with os.scandir(self._root) as entries:
                return sorted((entry.name for entry in entries if entry.name[:1].isdigit()), reverse=True)[:_NEWEST]
        except OSError:
            return []
