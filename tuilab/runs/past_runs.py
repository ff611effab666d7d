"""The past runs of a scenario: what changed, how it ended, what it found."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tuilab.catalogue.scenario import Stated
from tuilab.errors import TuilabError
from tuilab.record.states import RUNNING_STATES, RunState
from tuilab.record.verdicts import QUEUED, RUNNING, Verdict
from tuilab.runs.last_verdicts import Said, is_off, needed, said_of
from tuilab.runs.run_name import RunName

if TYPE_CHECKING:
    from tuilab.record.events import RunStarted, VerdictReached
    from tuilab.record.parts import Claim
    from tuilab.record.summary import RunSummary
    from tuilab.runs.listing.entry import Entry

NEWEST = 30  # runs that are listed; History shows them all


@dataclass(frozen=True)
class PastRun:
    """One run, as much of it as a list shows."""

    run_dir: Path
    state: str
    run: "RunStarted | None" = None
    elapsed_s: float = 0.0
    claims: "Sequence[Claim]" = ()
    lacks: str = ""  # what this box has not

    @property
    def is_going_on(self) -> bool:
        return self.state in RUNNING_STATES

    @property
    def is_usual(self) -> bool:
        """Whether it ran with the defaults, wherever, and nobody ended it."""
        run = self.run
        is_as_written = run is not None and not run.quick and set(run.changed) <= {"device"}
        return is_as_written and self.state != RunState.STOPPED

    @property
    def could_test(self) -> bool:
        """Whether it reached a verdict that says more than what the box lacks."""
        return any(claim.verdict and claim.verdict.verdict != Verdict.NOT_TESTABLE for claim in self.claims)

    @property
    def gpus(self) -> list[str]:
        """The GPUs on which its claims were measured, in words."""
        return [*dict.fromkeys(claim.gpu for claim in self.claims if claim.gpu)]

    @property
    def is_off(self) -> bool:
        """Whether it is a point of a sweep that says nothing of the lesson."""
        return bool(self.run and self.run.sweep and is_off(self.run.sweep.point, self.run.changed))

    @property
    def changes(self) -> dict[str, str]:
        """What differs from the defaults, by name."""
        from tuilab.catalogue.params import spell

        run = self.run
        return {name: spell(run.params[name]) for name in run.changed if name in run.params} if run else {}

    @property
    def values(self) -> dict[str, str]:
        """The same, behind the values that a point of a sweep has, whatever the defaults are."""
        from tuilab.catalogue.params import spell

        point = self.run.sweep.point if self.run and self.run.sweep else {}
        return {name: spell(value) for name, value in point.items()} | self.changes


def runs_of(scenario: str, root: Path) -> list[Path]:
    """Return the folders of a scenario's runs, the newest first."""
    from tuilab.runs import store

    try:
        runs = store.list_runs(root)
    except TuilabError:
        return []
    return [run for run in runs if RunName(run.name).scenario == scenario]


def telling(scenario: str, root: Path, entry_of: "Callable[[str], Entry]") -> list[Path]:
    """Return a scenario's newest runs, and behind them the older ones that speak for it as in the list of scenarios.

    The points of a large sweep, which say nothing of a lesson, hide its marks nowhere.
    """
    runs = runs_of(scenario, root)
    said = needed((run.name for run in runs), lambda run: _over(said_of(entry_of(run)))) if runs[NEWEST:] else {}
    saying = [run for run, one in said.items() if one.verdict]
    return [*runs[:NEWEST], *(run for run in runs[NEWEST:] if run.name in {*saying[:1], *saying[-1:]})]


def _over(said: Said) -> Said:
    """Return what a run says; one that waits or goes on says nothing yet, and hides none that did."""
    return Said() if said.verdict in (RUNNING, QUEUED) else said


def look(run_dir: Path) -> PastRun:
    """Return a run as it is now, without reading what its workers logged; of one that cannot be read just that."""
    from tuilab.runs import ledger

    try:
        summary, state = ledger.look(run_dir)
        claims = tuple(summary.claims.values())
        return PastRun(run_dir, state, summary.run, summary.elapsed_s, claims, _lacks(run_dir, summary))
    except (OSError, TuilabError):
        return PastRun(run_dir, RunState.UNREADABLE)


def _lacks(run_dir: Path, summary: "RunSummary") -> str:
    """Return what this box had not: the reason of every verdict, or where there are none, what a worker said of it."""
    from tuilab.record.live_run import read_run

    reached = [claim.verdict for claim in summary.claims.values() if claim.verdict]
    if any(verdict.verdict != Verdict.NOT_TESTABLE for verdict in reached):
        return ""
    if reached:
        return next((verdict.why for verdict in reached if verdict.why), "")
    return read_run(run_dir).box_lacks if summary.is_over else ""


def began(run_dir: Path) -> str:
    """Return when a run began, in this box's own time; nothing when its name does not tell."""
    started_s = RunName(run_dir.name).started_s
    return "" if started_s is None else time.strftime("%d %b %H:%M", time.localtime(started_s))


def newest_verdicts(runs: Sequence[PastRun]) -> PastRun | None:
    """Return the newest of some runs that said something about its claims: with the defaults, or where none was, of all.

    One in which nothing could be tested counts only where nothing ever was.
    """
    saying = [run for run in runs if not run.is_off and (any(claim.verdict for claim in run.claims) or run.lacks)]
    saying = [run for run in saying if run.could_test] or saying
    return next((run for run in saying if run.is_usual), next(iter(saying), None))


def verdict_on(claim: Stated | None, run: PastRun) -> "VerdictReached | None":
    """Return the verdict of a run on the claim with the same key."""
    if claim is None:
        return None
    for recorded in run.claims:
        if recorded.key == claim.key:
            return recorded.verdict
    return None
