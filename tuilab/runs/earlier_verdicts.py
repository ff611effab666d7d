"""How often a claim about time was judged before on this machine: who repeats a run until its verdict fits should see that.

A run counts if scenario, source, parameters and machine are the same, the claim was measured on the same GPU if on any, the
claim got a verdict, and the run still exists.
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
from tuilab.runs.entry import RunEntry
from tuilab.runs.folders import run_names
from tuilab.runs.index import Index
from tuilab.runs.run_name import RunName
from tuilab.text.display import show

MOST_READ = 5  # runs that the index does not have yet; it keeps them, and the next question reads the next ones
_NAMED = 5  # verdicts that are listed; more are counted


def record_earlier_verdicts(
    run_dir: Path, summary: RunSummary, index: Index | None = None
) -> dict[str, str]:
    """Return for each claim how often it was judged before this run, and how; claims that never were are left out."""
    run = summary.run
    claims = [claim for claim in summary.claims.values() if _is_judged_ratio(claim)]
    if run is None or not claims or run.supervisor.host != host_name() or is_imported(run_dir):
        return {}
    index = index.in_folder(run_dir.parent) if index else Index(run_dir.parent)
    known, is_all = _earlier_runs(run_dir, index)
    index.save()
    same = [entry for entry in known if _is_same_measurement(entry, run)]
    told = {}
    for claim in claims:
        gpu = show(claim.gpu, 200)
        if verdicts := _verdicts(claim, same):
            told[claim.claim_id] = in_words(
                verdicts, is_all=is_all, where=f"this GPU, {gpu}" if gpu else "this machine"
            )
    return told


def in_words(verdicts: Sequence[str], *, is_all: bool = True, where: str = "this machine") -> str:
    """Return which run of a claim this is, as `3rd run of this claim on this machine; the others: ...`."""
    which = f"{'' if is_all else 'at least the '}{_ordinal(len(verdicts) + 1)} run of this claim on {where}"
    if len(verdicts) > _NAMED:
        others = ", ".join(
            f"{count} {verdict}" for verdict, count in Counter(verdicts).most_common()
        )
    else:
        others = ", ".join(verdicts)
    return f"{which}; the other{'s' * (len(verdicts) > 1)}: {others}"


def _is_judged_ratio(claim: Claim) -> bool:
    return (
        claim.declared is not None
        and claim.verdict is not None
        and claim.outcome != Verdict.NOT_TESTABLE
    )


def _is_same_measurement(entry: RunEntry, run: RunStarted) -> bool:
    """Return whether a run measured the same as another one: scenario, source, parameters and machine."""
    if (entry.scenario, entry.source_sha256, entry.host) != (
        run.scenario,
        run.source_sha256,
        run.supervisor.host,
    ):
        return False
    return entry.changed == {name: run.params[name] for name in run.changed if name in run.params}


def _earlier_runs(run_dir: Path, index: Index) -> tuple[list[RunEntry], bool]:
    """Return the finished runs of the scenario before a run, oldest first, and whether none of them is left to be read."""
    scenario = RunName(run_dir.name).scenario
    earlier = [
        name
        for name in run_names(index.root)
        if name < run_dir.name and RunName(name).scenario == scenario
    ]
    entries = []
    left = MOST_READ
    is_all = True
    for name in earlier:
        entry = index.entry_if_over(name)
        if entry is None and left:
            left -= 1
            entry = index.read(name)
        if entry is None:
            is_all = False
        else:
            entries.append(entry)
    return entries[::-1], is_all


def _verdicts(claim: Claim, entries: Sequence[RunEntry]) -> list[str]:
    """Return the verdicts of runs on a claim, oldest first, if it was measured on the same GPU."""
    gpu = claim.verdict.gpu[:300] if claim.verdict else ""
    found = [
        verdict for one in entries if (verdict := _verdicts_on(gpu, one).get(claim.claim_id[:300]))
    ]
    return [verdict for verdict in found if verdict != Verdict.NOT_TESTABLE]


def _verdicts_on(gpu: str, entry: RunEntry) -> Mapping[str, str]:
    told = zip_longest(entry.claim_keys, entry.claims, entry.claim_gpus, fillvalue="")
    return {key or claim[0]: claim[1] for key, claim, where in told if claim and where == gpu}


def _ordinal(number: int) -> str:
    ending = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"
