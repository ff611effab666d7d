"""What earlier runs said: the last verdict on each scenario, from a small index that may be deleted at any time.

Kept free of slow imports: `tuilab list` reads it, and most of the time every answer is in the index.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from tuilab import store

RUNNING = "running"
_WORST_FIRST = ("INVALID", "REFUTED", "INCONCLUSIVE", "WEAKER THAN CLAIMED", "NO MEANINGFUL DIFFERENCE", "SUPPORTED")


def last_verdicts(root: Path) -> dict[str, str]:
    """Return, by scenario, the worst verdict of its newest run; FAILED for a run that failed, `running` for one that runs."""
    index = _read_index(root)
    found: dict[str, str] = {}
    fresh: dict[str, str] = {}
    for run_dir in store.list_runs(root):
        scenario = store.scenario_of(run_dir.name)
        if scenario not in found:
            found[scenario] = index.get(run_dir.name) or _look(run_dir)
            if found[scenario] != RUNNING:
                fresh[run_dir.name] = found[scenario]
    if fresh != index:
        _write_index(root, fresh)
    return found


def overall(verdicts: list[str]) -> str:
    """Return the one verdict that several amount to: the worst; NOT TESTABLE HERE only when nothing could be tested."""
    return next((verdict for verdict in _WORST_FIRST if verdict in verdicts), "NOT TESTABLE HERE" if verdicts else "")


def _look(run_dir: Path) -> str:
    from tuilab.errors import TuilabError
    from tuilab.watch import Watch

    try:
        watch = Watch(run_dir)
        while watch.refresh():
            pass
        state = watch.state()
        watch.close()
    except TuilabError:
        return "FAILED"
    if state in ("starting", "running", "stopping"):
        return RUNNING
    if state != "succeeded":
        return "FAILED"
    return overall([claim.verdict.verdict if claim.verdict else "" for claim in watch.summary.claims.values()])


def _index_path(root: Path) -> Path:
    return root / ".verdicts.json"


def _read_index(root: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        index = json.loads(_index_path(root).read_bytes())
        if isinstance(index, dict):
            return index
    return {}


def _write_index(root: Path, index: dict[str, str]) -> None:
    """Replace the index; without room or permission there is none, and the next reader looks for itself."""
    with suppress(OSError):
        temporary = root / f".verdicts-{os.getpid()}"
        temporary.write_text(json.dumps(index))
        temporary.chmod(0o600)
        temporary.replace(_index_path(root))
