"""Follow one claim through the runs of a scenario: its results, and the facts that changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tuilab.errors import UsageError
from tuilab.record.live_run import read_run
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.runs.command_line import hint
from tuilab.runs.comparing.claim_pairs import Side, side_of
from tuilab.runs.comparing.differences import ABSENT, Difference, Facts, facts_of
from tuilab.text.display import join, join_first, plural, show

# Facts in the order in which their changes are listed: first those that change a result most often,
# last those that follow from them.
_WEIGHTY = (
    "scenario.py",
    "GPU of the run",
    "host",
    "model",
    "torch version",
    "driver",
    "kernel",
    "checkout commit",
)
_LISTED = 5  # claims that an error lists
_PARTS = ("parameter", "source", "run", "environment")


@dataclass(frozen=True)
class HistoryEntry:
    """The claim in one run."""

    run_dir: Path
    side: Side
    changes: tuple[Difference, ...]  # since the previous run


@dataclass(frozen=True)
class ClaimHistory:
    """The claim in every run that made it, oldest first."""

    scenario: str
    key: str
    text: str  # of the newest run
    bound: float | None  # that is claimed, of a ratio
    moments: tuple[HistoryEntry, ...]


def history_of(run_dirs: Sequence[Path], reference: str) -> ClaimHistory:
    """Return the history of a claim in runs that are given oldest first.

    The reference is the key of the claim, or a part of its text that no other claim of a run has. A
    run without the claim is left out. Raise UsageError if no run has the claim, if the text fits
    several claims, or if several scenarios have it.
    """
    runs = [(run_dir, read_run(run_dir)) for run_dir in run_dirs]
    scenarios: dict[str, None] = {}
    entries = []
    earlier_facts: Facts = {}
    newest: Claim | None = None
    for run_dir, summary in runs:
        claim = _find_claim(summary, reference)
        if claim is None:
            continue
        scenarios[_scenario(summary)] = None
        facts = facts_of(summary)
        changes = _changes(earlier_facts, facts) if earlier_facts else []
        entries.append(HistoryEntry(run_dir, side_of(claim), tuple(changes)))
        earlier_facts = facts
        newest = claim
    if newest is None:
        _refuse_ambiguous(runs, reference)
        raise UsageError(_describe_unknown(runs, reference))
    if len(scenarios) > 1:
        raise UsageError(
            f"several scenarios have a claim {show(reference, 60)}: {join(scenarios)}; "
            "choose one with --scenario NAME"
        )
    bound = newest.declared.bound if newest.declared else None
    (scenario,) = scenarios
    return ClaimHistory(scenario, newest.key, newest.text, bound, tuple(entries))


def _refuse_ambiguous(runs: Sequence[tuple[Path, RunSummary]], reference: str) -> None:
    """Raise an error that names the claims if several claims of one run contain the text."""
    for _, summary in reversed(runs):
        matches = [claim.claim_id for claim in summary.claims.values() if reference in claim.text]
        if len(matches) > 1:
            raise UsageError(
                f"several claims of {_scenario(summary)} contain {show(reference, 60)}; "
                f"name one: {join_first(matches, _LISTED)}"
            )


def _describe_unknown(runs: Sequence[tuple[Path, RunSummary]], reference: str) -> str:
    """Return that no run has the claim, and the claims that the runs have."""
    claim_ids: dict[str, None] = {}
    for _, summary in runs:
        claim_ids |= dict.fromkeys(claim.claim_id for claim in summary.claims.values())
    if claim_ids:
        step = f"their claims are {join_first(list(claim_ids), _LISTED)}"
    else:
        step = f"list the runs: {hint([run_dir.parent for run_dir, _ in runs], 'runs')}"
    return f"0 of {plural(len(runs), 'run')} have a claim {show(reference, 60)}; {step}"


def _scenario(summary: RunSummary) -> str:
    return summary.run.scenario if summary.run else ABSENT


def _find_claim(summary: RunSummary, reference: str) -> Claim | None:
    """Return the claim with a key, else the only one that contains a text; None if none does."""
    claims = summary.claims.values()
    matches = [claim for claim in claims if claim.claim_id == reference]
    if not matches:
        matches = [claim for claim in claims if reference in claim.text]
    if len(matches) != 1:
        return None
    return matches[0]


def _changes(earlier: Facts, later: Facts) -> list[Difference]:
    """Return the facts that differ between two runs, the weightiest ones first."""
    rows = []
    for part, name in dict.fromkeys([*later, *earlier]):
        earlier_value = earlier.get((part, name), ABSENT)
        later_value = later.get((part, name), ABSENT)
        if earlier_value != later_value:
            rows.append(Difference(part, name, (earlier_value, later_value)))
    return sorted(rows, key=_rank)


def _rank(row: Difference) -> tuple[int, int]:
    """Return the key that sorts facts: by part, then by how often they change results."""
    part_rank = len(_PARTS)
    if row.part in _PARTS:
        part_rank = _PARTS.index(row.part)
    for position, name in enumerate(_WEIGHTY):
        if name in row.name:
            return part_rank, position
    return part_rank, len(_WEIGHTY)
