"""The past runs of a scenario: what changed, how it ended, what it found."""

import calendar
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tuilab.errors import TuilabError

if TYPE_CHECKING:
    from tuilab.events import RunStarted, VerdictReached
    from tuilab.summary import RunSummary

_GAP = re.compile(r"\{[^{}]*\}")
NEWEST = 30  # runs that are looked at; History shows them all


@dataclass(frozen=True)
class PastRun:
    """One run, as much of it as a list shows."""

    run_dir: Path
    state: str
    run: "RunStarted | None" = None
    elapsed_s: float = 0.0
    verdicts: "dict[str, VerdictReached | None]" = field(default_factory=dict)  # by the text of the claim
    lacks: str = ""  # what this box has not

    @property
    def is_going_on(self) -> bool:
        return self.state in ("starting", "running", "stopping")

    @property
    def changes(self) -> dict[str, str]:
        """What differs from the defaults, by name."""
        from tuilab.params import spell

        run = self.run
        return {name: spell(run.params[name]) for name in run.changed if name in run.params} if run else {}


def runs_of(scenario: str, root: Path) -> list[Path]:
    """Return the folders of a scenario's newest runs, the newest first."""
    from tuilab import store

    try:
        runs = store.list_runs(root)
    except TuilabError:
        return []
    return [run for run in runs if run.name.partition("-")[2].rpartition("-")[0] == scenario][:NEWEST]


def look(run_dir: Path) -> PastRun:
    """Return a run as it is now, without reading what its workers logged; one that cannot be read is lost."""
    from tuilab import ledger

    try:
        summary, state = ledger.look(run_dir)
        verdicts = {text: claim.verdict for text, claim in summary.claims.items()}
        return PastRun(run_dir, state, summary.run, summary.elapsed_s, verdicts, _lacks(run_dir, summary))
    except (OSError, TuilabError):
        return PastRun(run_dir, "lost")


def _lacks(run_dir: Path, summary: "RunSummary") -> str:
    """Return what this box had not: the reason of every verdict, or where there are none, what a worker said of it."""
    from tuilab.watch import read_run

    reached = [claim.verdict for claim in summary.claims.values() if claim.verdict]
    if any(verdict.verdict != "NOT TESTABLE HERE" for verdict in reached):
        return ""
    if reached:
        return next((verdict.why for verdict in reached if verdict.why), "")
    return read_run(run_dir).box_lacks if summary.is_over else ""


def began(run_dir: Path) -> str:
    """Return when a run began, in this box's own time; nothing when its name does not tell."""
    try:
        utc = calendar.timegm(time.strptime(run_dir.name[:15], "%Y%m%dT%H%M%S"))
    except ValueError:
        return ""
    return time.strftime("%d %b %H:%M", time.localtime(utc))


def newest_verdicts(runs: Sequence[PastRun]) -> PastRun | None:
    """Return the newest of some runs that said something about its claims."""
    return next((run for run in runs if any(run.verdicts.values()) or run.lacks), None)


def verdict_on(bullet: str, claims: Sequence[str], verdicts: "Mapping[str, VerdictReached | None]") -> "VerdictReached | None":
    """Return the verdict on the claim that a bullet states; `{...}` in a claim stands for any words."""
    fitting = [claim for claim in claims if _fits(_words(bullet), _words(claim))]
    for text, verdict in verdicts.items():
        if _words(text) == _words(bullet) or any(_fits(_words(text), _words(claim)) for claim in fitting):
            return verdict
    return None


def _words(text: str) -> str:
    return " ".join(text.replace("`", "").split()).removesuffix(".")


def _fits(text: str, claim: str) -> bool:
    """Compare word for word; part by part, because a pattern with many gaps could be slow."""
    first, *gaps = _GAP.split(claim)
    if not gaps:
        return text == claim
    *middle, last = gaps
    at = len(first)
    for part in middle:
        at = text.find(part, at) + len(part)
        if at < len(part):
            return False
    return text.startswith(first) and text[at:].endswith(last)
