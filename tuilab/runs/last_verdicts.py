"""What earlier runs said: the last verdict on each scenario, from a small index that may be deleted at any time.

Kept free of slow imports: `tuilab list` reads it, and most of the time every answer is in the index.
"""

import json
import os
from contextlib import suppress
from typing import Any

from tuilab.files import read_regular
from tuilab.record.verdicts import FAILED, RUNNING, WORST_FIRST, Verdict
from tuilab.runs.run_name import RunName

_INDEX = ".verdicts.json"
_INDEX_LIMIT = 4 * 1024 * 1024


def last_verdicts(root: str) -> dict[str, str]:
    """Return, by scenario, the worst verdict of its newest run; FAILED for a run that failed, `running` for one that runs."""
    index = _read_index(root)
    found: dict[str, str] = {}
    fresh: dict[str, str] = {}
    for run in _newest_first(root):
        scenario = RunName(run).scenario
        if scenario not in found:
            found[scenario] = index.get(run) or _look(root, run)
            if found[scenario] != RUNNING:
                fresh[run] = found[scenario]
    if fresh != index:
        _write_index(root, fresh)
    return found


def _newest_first(root: str) -> list[str]:
    with suppress(OSError), os.scandir(root) as entries:
        return sorted((entry.name for entry in entries if entry.name[:1] != "."), reverse=True)
    return []


def overall(verdicts: list[str]) -> str:
    """Return the one verdict that several amount to: the worst; NOT TESTABLE HERE only when nothing could be tested."""
    return next((verdict for verdict in WORST_FIRST if verdict in verdicts), Verdict.NOT_TESTABLE if verdicts else "")


def _look(root: str, run: str) -> str:
    from pathlib import Path

    from tuilab.record.states import RunState
    from tuilab.runs import ledger

    found = ledger.read(Path(root, run))
    if found.is_running:
        return RUNNING
    if found.state != RunState.SUCCEEDED:
        return FAILED
    return overall([verdict for _, verdict in found.claims])


def _read_index(root: str) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        index = json.loads(read_regular(f"{root}/{_INDEX}", _INDEX_LIMIT))
        if isinstance(index, dict):
            return index
    return {}


def _write_index(root: str, index: dict[str, str]) -> None:
    """Replace the index; without room or permission there is none, and the next reader looks for itself."""
    temporary = f"{root}/{_INDEX}.{os.getpid()}"
    with suppress(OSError):
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "w") as file:
            json.dump(index, file)
        os.replace(temporary, f"{root}/{_INDEX}")
