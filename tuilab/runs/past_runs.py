"""The past runs of a scenario, as the Lab shows them: their changes, states and verdicts."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tuilab.catalogue.scenario import StatedClaim
from tuilab.errors import TuilabError
from tuilab.record.verdicts import Verdict
from tuilab.runs.entry import RunEntry
from tuilab.runs.representative import representative_run
from tuilab.runs.run_name import RunName

if TYPE_CHECKING:
    from tuilab.record.events import RunStarted, VerdictReached
    from tuilab.record.summary import RunSummary
    from tuilab.record.summary_parts import Claim

NEWEST = 30  # runs that are listed; History shows all


@dataclass(frozen=True)
class PastRun:
    """A run with its claims."""

    run_dir: Path
    entry: RunEntry
    run: "RunStarted | None" = None
    claims: "Sequence[Claim]" = ()
    lacks: str = ""  # what the machine lacked, if no claim could be tested

    @property
    def state(self) -> str:
        return self.entry.state

    @property
    def changes(self) -> dict[str, str]:
        """The parameters that differ from the defaults, by name."""
        return _spelled(self.entry.changed)

    @property
    def values(self) -> dict[str, str]:
        """The values of a point of a sweep, then the parameters that differ from the defaults."""
        return _spelled({**self.entry.point, **self.entry.changed})


def _spelled(values: Mapping[str, bool | int | float | str]) -> dict[str, str]:
    from tuilab.catalogue.params import spell  # imported here: the first picture has no values

    return {name: spell(value) for name, value in values.items()}


def runs_of(scenario: str, root: Path) -> list[Path]:
    """Return the folders of the runs of a scenario, newest first."""
    from tuilab.runs import store

    try:
        runs = store.list_runs(root)
    except TuilabError:
        return []
    return [run for run in runs if RunName(run.name).scenario == scenario]


def runs_to_show(scenario: str, root: Path, entry_of: Callable[[str], RunEntry]) -> list[Path]:
    """Return the newest runs of a scenario, and then an older one if it represents the scenario."""
    runs = runs_of(scenario, root)
    shown = runs[:NEWEST]
    if len(runs) > NEWEST:
        best = representative_run(entry_of(run.name) for run in runs)
        if best and root / best.run not in shown:
            shown.append(root / best.run)
    return shown


def read_past_run(run_dir: Path) -> PastRun:
    """Return a run as it is now, without the values that its workers logged.

    If the run cannot be read, only its state is known.
    """
    from tuilab.runs import read_entry

    try:
        summary, state = read_entry.read_summary(run_dir)
        lacks = _lacks(run_dir, summary)
    except (OSError, TuilabError):
        return PastRun(run_dir, read_entry.read_entry(run_dir))
    return PastRun(
        run_dir,
        read_entry.entry_of(run_dir, summary, state),
        summary.run,
        tuple(summary.claims.values()),
        lacks,
    )


def _lacks(run_dir: Path, summary: "RunSummary") -> str:
    """Return what the machine lacked; empty if a claim could be tested.

    It is the reason of the verdicts. Without any verdict, it is what a worker recorded.
    """
    from tuilab.record.live_run import read_run

    verdicts = [claim.verdict for claim in summary.claims.values() if claim.verdict]
    if any(verdict.verdict != Verdict.NOT_TESTABLE for verdict in verdicts):
        return ""
    for verdict in verdicts:
        if verdict.why:
            return verdict.why
    if verdicts or not summary.is_over:
        return ""
    return read_run(run_dir).box_lacks


def began(run_dir: Path) -> str:
    """Return the local time at which a run started; empty if its folder's name has none."""
    started_s = RunName(run_dir.name).started_s
    if started_s is None:
        return ""
    return time.strftime("%d %b %H:%M", time.localtime(started_s))


def representative_past_run(newest_first: Sequence[PastRun]) -> PastRun | None:
    """Return the run that represents its scenario; None if none does."""
    best = representative_run(run.entry for run in newest_first)
    for run in newest_first:
        if run.entry is best:
            return run
    return None


def verdict_on(claim: StatedClaim | None, run: PastRun) -> "VerdictReached | None":
    """Return the verdict of a run on the claim with the same key; None if it has none."""
    if claim is None:
        return None
    for recorded in run.claims:
        if recorded.key == claim.key:
            return recorded.verdict
    return None
