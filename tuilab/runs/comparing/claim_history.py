"""One claim in run after run of a scenario: what came of it, and what was other than in the run before."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tuilab.errors import UsageError
from tuilab.record.live_run import read_run
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.runs.command_line import hint
from tuilab.runs.comparing.claim_pairs import Side, side_of
from tuilab.runs.comparing.differences import ABSENT, Difference, facts_of
from tuilab.text.display import join, join_first, plural, show

# What changes a result most often comes first, and what follows from it last.
_TELLING = (
    "scenario.py",
    "GPU of the run",
    "host",
    "model",
    "torch version",
    "driver",
    "kernel",
    "checkout commit",
)
_NAMED = 5  # claims that an error lists
_PARTS = ("parameter", "source", "run", "environment")


@dataclass(frozen=True)
class HistoryEntry:
    """The claim in one run."""

    run_dir: Path
    side: Side
    changes: tuple[Difference, ...]  # since the run before


@dataclass(frozen=True)
class ClaimHistory:
    """The claim in every run that made it, the oldest first."""

    scenario: str
    key: str
    text: str  # as the newest run has it
    bound: float | None  # that is claimed, of a ratio
    moments: tuple[HistoryEntry, ...]


def history_of(run_dirs: Sequence[Path], wanted: str) -> ClaimHistory:
    """Return the history of the claim with a key, or of the only one with these words, in runs that are given oldest first."""
    runs = [(run_dir, read_run(run_dir)) for run_dir in run_dirs]
    names = dict.fromkeys(_scenario(summary) for _, summary in runs if _claim_of(summary, wanted))
    if not names:
        _refuse_ambiguous(runs, wanted)
        known = dict.fromkeys(
            claim.claim_id for _, summary in runs for claim in summary.claims.values()
        )
        told = (
            f"their claims are {join_first([*known], _NAMED)}"
            if known
            else f"list the runs: {hint([run_dir.parent for run_dir in run_dirs], 'runs')}"
        )
        raise UsageError(f"0 of {plural(len(runs), 'run')} have a claim {show(wanted, 60)}; {told}")
    if len(names) > 1:
        raise UsageError(
            f"several scenarios have a claim {show(wanted, 60)}: {join(names)}; choose one with --scenario NAME"
        )
    moments: list[HistoryEntry] = []
    before: dict[tuple[str, str], str] = {}
    newest: Claim | None = None
    for run_dir, summary in runs:
        if claim := _claim_of(summary, wanted):
            facts = facts_of(summary)
            moments.append(
                HistoryEntry(
                    run_dir, side_of(claim), tuple(_changes(before, facts)) if before else ()
                )
            )
            before, newest = facts, claim
    assert newest
    bound = newest.declared.bound if newest.declared else None
    return ClaimHistory(next(iter(names)), newest.key, newest.text, bound, tuple(moments))


def _refuse_ambiguous(runs: Sequence[tuple[Path, RunSummary]], wanted: str) -> None:
    """Raise an error that names the claims if several claims of one run contain the words."""
    for _, summary in reversed(runs):
        matches = [claim.claim_id for claim in summary.claims.values() if wanted in claim.text]
        if len(matches) > 1:
            raise UsageError(
                f"several claims of {_scenario(summary)} contain {show(wanted, 60)}; name one: {join_first(matches, _NAMED)}"
            )


def _scenario(summary: RunSummary) -> str:
    return summary.run.scenario if summary.run else ABSENT


def _claim_of(summary: RunSummary, wanted: str) -> Claim | None:
    """Return the claim that is meant: by its key, else by a part of its words that no other claim of the run has."""
    claims = summary.claims.values()
    found = [claim for claim in claims if claim.claim_id == wanted] or [
        claim for claim in claims if wanted in claim.text
    ]
    return found[0] if len(found) == 1 else None


def _changes(
    before: dict[tuple[str, str], str], after: dict[tuple[str, str], str]
) -> list[Difference]:
    names = dict.fromkeys([*after, *before])
    rows = [
        Difference(*name, (before.get(name, ABSENT), after.get(name, ABSENT))) for name in names
    ]
    return sorted((row for row in rows if len(set(row.values)) > 1), key=_weight)


def _weight(row: Difference) -> tuple[int, int]:
    place = next((at for at, name in enumerate(_TELLING) if name in row.name), len(_TELLING))
    return _PARTS.index(row.part) if row.part in _PARTS else len(_PARTS), place
