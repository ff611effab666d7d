"""Describe how often a claim about time was judged before on this machine, and how.

Users who repeat a run until its verdict fits should see that. A run counts if scenario, source,
parameters and machine are the same, the claim got a verdict, and the run still exists. If the claim
was measured on a GPU, it has to be the same GPU.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from tuilab.record.events import RunStarted
from tuilab.record.origin.imported import is_imported
from tuilab.record.presence import host_name
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.record.verdicts import Verdict
from tuilab.runs.command_line import changes
from tuilab.runs.entry import RunEntry
from tuilab.runs.folders import run_names
from tuilab.runs.index import Index
from tuilab.runs.run_name import RunName
from tuilab.text.display import show

# Runs that are read at a time because the index does not have them yet. The index keeps them, so
# that the next call reads the next ones.
MOST_READ = 5
_LISTED = 5  # verdicts that are listed; more are counted


def describe_earlier_verdicts(
    run_dir: Path, summary: RunSummary, index: Index | None = None
) -> dict[str, str]:
    """Return for each claim how often it was judged before this run, and how.

    A claim that was never judged before is left out.
    """
    run = summary.run
    claims = [claim for claim in summary.claims.values() if _is_judged_ratio(claim)]
    if run is None or not claims or run.supervisor.host != host_name() or is_imported(run_dir):
        return {}
    if index:
        index = index.in_folder(run_dir.parent)
    else:
        index = Index(run_dir.parent)
    earlier, is_all = _earlier_runs(run_dir, index)
    index.save()
    same = [entry for entry in earlier if _is_same_measurement(entry, run)]
    descriptions = {}
    for claim in claims:
        verdicts = _verdicts(claim, same)
        if verdicts:
            gpu = show(claim.gpu, 200)
            where = f"this GPU, {gpu}" if gpu else "this machine"
            description = describe_verdicts(verdicts, is_all=is_all, where=where)
            descriptions[claim.claim_id] = description
    return descriptions


def describe_verdicts(
    verdicts: Sequence[str], *, is_all: bool = True, where: str = "this machine"
) -> str:
    """Return which run of a claim this is, as `3rd run of this claim on this machine; ...`.

    `verdicts` are those of the earlier runs. `is_all`: there are no more earlier runs.
    """
    number = _ordinal(len(verdicts) + 1)
    if not is_all:
        number = f"at least the {number}"
    listed = list(verdicts)
    if len(verdicts) > _LISTED:
        listed = [f"{count} {verdict}" for verdict, count in Counter(verdicts).most_common()]
    noun = "others" if len(verdicts) > 1 else "other"
    return f"{number} run of this claim on {where}; the {noun}: {', '.join(listed)}"


def _is_judged_ratio(claim: Claim) -> bool:
    if claim.declared is None or claim.verdict is None:
        return False
    return claim.outcome != Verdict.NOT_TESTABLE


def _is_same_measurement(entry: RunEntry, run: RunStarted) -> bool:
    """Return whether a run has the scenario, source, parameters and machine of another run."""
    if entry.scenario != run.scenario or entry.source_sha256 != run.source_sha256:
        return False
    return entry.host == run.supervisor.host and entry.changed == changes(run)


def _earlier_runs(run_dir: Path, index: Index) -> tuple[list[RunEntry], bool]:
    """Return the earlier runs of the scenario of a run, oldest first, and whether these are all.

    They are not all if more than MOST_READ of them had to be read.
    """
    scenario = RunName(run_dir.name).scenario
    entries = []
    remaining_reads = MOST_READ
    is_all = True
    for name in run_names(index.root):
        if name >= run_dir.name or RunName(name).scenario != scenario:
            continue
        entry = index.entry_if_over(name)
        if entry is None and remaining_reads:
            remaining_reads -= 1
            entry = index.read(name)
        if entry is None:
            is_all = False
        else:
            entries.append(entry)
    return entries[::-1], is_all


def _verdicts(claim: Claim, entries: Sequence[RunEntry]) -> list[str]:
    """Return the verdicts of runs on a claim, oldest first, if it was measured on the same GPU."""
    gpu = claim.verdict.gpu[:300] if claim.verdict else ""
    verdicts = []
    for entry in entries:
        verdict = _verdicts_on(gpu, entry).get(claim.claim_id[:300])
        if verdict and verdict != Verdict.NOT_TESTABLE:
            verdicts.append(verdict)
    return verdicts


def _verdicts_on(gpu: str, entry: RunEntry) -> Mapping[str, str]:
    """Return the verdicts of a run on claims that were measured on a GPU, by key or text."""
    verdicts = {}
    # The lists of keys and GPUs may be shorter than the list of claims.
    columns = zip_longest(entry.claim_keys, entry.claims, entry.claim_gpus, fillvalue="")
    for key, claim, claim_gpu in columns:
        if claim and claim_gpu == gpu:
            verdicts[key or claim[0]] = claim[1]
    return verdicts


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
