"""What earlier runs said of each scenario: the newest that ran with its defaults speaks, and the worst of its verdicts counts.

A run that was stopped, a quick one and one with other parameters say something else: they speak only while no other has. One
in which nothing could be tested, as on a GPU that is not there, speaks only where nothing ever was. A point of a sweep with
another value than the lesson's says nothing of the lesson: there are many, and the last is any of them.

Kept free of slow imports: `tuilab list` asks it.
"""

import os
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tuilab.record.states import BROKEN_STATES, RUNNING_STATES, RunState
from tuilab.record.verdicts import FAILED, QUEUED, RUNNING, WORST_FIRST, Verdict
from tuilab.runs.run_name import RunName, by_time
from tuilab.text import show

if TYPE_CHECKING:
    from tuilab.runs.listing.entry import Entry

_LOOKED_AT = 100  # runs of a scenario that say something, the newest
FINAL = frozenset({*Verdict, FAILED, ""})  # all that a run can say of its scenario when it is over
_BROKEN = BROKEN_STATES - {RunState.UNREADABLE}  # of which nothing is known
_USUAL = _BROKEN | RUNNING_STATES | {RunState.SUCCEEDED}


class Said(NamedTuple):
    """What is known of a scenario in one word, and what is to be told with it: nothing of a run with the defaults."""

    verdict: str = ""
    of: str = ""  # `quick, rows=5`, `stopped`


def runs_in(root: str) -> list[str]:
    """Return the names in a folder that may be runs, newest first; whether each is one shows when it is looked at."""
    with suppress(OSError), os.scandir(root) as entries:
        names = [entry.name for entry in entries if entry.name[:1] != "." and entry.name.isprintable()]
        return sorted(names, key=by_time, reverse=True)
    return []


def by_scenario(runs: Iterable[str]) -> dict[str, list[str]]:
    """Return some runs by their scenarios, in their order."""
    found: dict[str, list[str]] = {}
    for run in runs:
        found.setdefault(RunName(run).scenario, []).append(run)
    found.pop("", None)  # no run is called so
    return found


def needed(runs: Iterable[str], said_by: Callable[[str], Said | None]) -> dict[str, Said]:
    """Return what those of a scenario's runs say, newest first, that are needed to know what is said of it.

    They end with the first that goes on or speaks for its scenario; one that waits may stand before one that goes on. A run
    that says None is not known.
    """
    found: dict[str, Said] = {}
    left = _LOOKED_AT
    for run in runs:
        if (said := said_by(run)) is None:
            continue
        found[run] = said
        left -= said.verdict != ""  # the points of a large sweep hide nothing
        if not left or said.verdict == RUNNING or _is_usual(said):
            break
    return found


def spoken(needed: Mapping[str, Said]) -> Said:
    """Return what runs that are needed amount to: what the last says that was with the defaults, else the newest verdict, and
    where nothing could ever be tested just that.

    That one of them goes on comes before that, and then that one waits for its turn.
    """
    saids = list(needed.values())
    if saids and saids[-1].verdict == RUNNING:
        return saids[-1]
    if queued := next((said for said in saids if said.verdict == QUEUED), None):
        return queued
    if saids and _is_usual(saids[-1]):
        return saids[-1]
    telling = [said for said in saids if said.verdict]
    return max(telling, key=lambda said: (said.verdict != Verdict.NOT_TESTABLE, not said.of), default=Said())


def _is_usual(said: Said) -> bool:
    """Say whether a run that is over speaks for its scenario: it was with the defaults, and something could be tested."""
    return not said.of and said.verdict not in (QUEUED, RUNNING, Verdict.NOT_TESTABLE)


def said_of(entry: "Entry") -> Said:
    """Return what a run says of its scenario, and what was otherwise than usual; another device is as usual."""
    from tuilab.catalogue.params import spell

    changed = [f"{name}={spell(value)}" for name, value in entry.changed.items() if name != "device"]
    words = [*(["quick"] if entry.quick else changed), *([] if entry.state in _USUAL else [entry.state])]
    return Said(verdict_of(entry), show(", ".join(words), 100))


def is_off(point: Iterable[str], changed: Container[str]) -> bool:
    """Say whether a run is a point of a sweep that goes through other values than the lesson's; another device is as usual."""
    return any(name in changed and name != "device" for name in point)


def verdict_of(entry: "Entry") -> str:
    """Return what a run says of its scenario: the worst verdict, FAILED where it failed; before its end RUNNING or QUEUED.

    One that was stopped failed in nothing: it says what was judged by then. One that cannot be read says nothing, and so does
    one in a state that only a newer tuilab knows.
    """
    if entry.is_running:
        return QUEUED if entry.state == RunState.QUEUED else RUNNING
    if is_off(entry.point, entry.changed):
        return ""
    if entry.state in _BROKEN:
        return FAILED
    return overall([verdict for _, verdict in entry.claims])


def overall(verdicts: list[str]) -> str:
    """Return the one verdict that several amount to: the worst; NOT TESTABLE HERE only when nothing could be tested."""
    return next((verdict for verdict in WORST_FIRST if verdict in verdicts), "")
