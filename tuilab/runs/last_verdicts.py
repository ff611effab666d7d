"""What earlier runs said of each scenario: the newest run speaks, and the worst of its verdicts counts.

Kept free of slow imports: `tuilab list` asks it.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from tuilab.record.states import RunState
from tuilab.record.verdicts import FAILED, RUNNING, WORST_FIRST, Verdict
from tuilab.runs.run_name import RunName, by_time

if TYPE_CHECKING:
    from tuilab.runs.ledger import Entry

FINAL = frozenset({*Verdict, FAILED, ""})  # all that a run can say of its scenario when it is over


def runs_in(root: str) -> list[str]:
    """Return the names in a folder that may be runs, newest first; whether each is one shows when it is looked at."""
    with suppress(OSError), os.scandir(root) as entries:
        names = [entry.name for entry in entries if entry.name[:1] != "." and entry.name.isprintable()]
        return sorted(names, key=by_time, reverse=True)
    return []


def newest_of_each(runs: Iterable[str]) -> dict[str, str]:
    """Return, by scenario, the newest of some runs, which come newest first."""
    newest: dict[str, str] = {}
    for run in runs:
        newest.setdefault(RunName(run).scenario, run)
    newest.pop("", None)  # no run is called so
    return newest


def verdict_of(entry: "Entry") -> str:
    """Return what a run says of its scenario: the worst verdict, FAILED where it failed, `running` while it runs.

    One that was stopped failed in nothing: it says what was judged by then.
    """
    if entry.is_running:
        return RUNNING
    if entry.state not in (RunState.SUCCEEDED, RunState.STOPPED):
        return FAILED
    return overall([verdict for _, verdict in entry.claims])


def overall(verdicts: list[str]) -> str:
    """Return the one verdict that several amount to: the worst; NOT TESTABLE HERE only when nothing could be tested."""
    return next((verdict for verdict in WORST_FIRST if verdict in verdicts), "")
