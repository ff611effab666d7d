"""Earlier runs of the same claim about time on this box: whoever runs again until a verdict fits is told how often that was.

It is the same claim where scenario, source and parameters are the same, and the GPU if it was measured on one. Only runs of
this box count that are still there, and that came to a verdict.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from tuilab.record.origin.imported import is_imported
from tuilab.record.parts import Claim
from tuilab.record.presence import host_name
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict
from tuilab.runs.last_verdicts import runs_in
from tuilab.runs.ledger_cache import LedgerCache
from tuilab.runs.listing.entry import Entry
from tuilab.runs.run_name import RunName
from tuilab.text import show

MOST_READ = 5  # runs that nobody has looked at yet; what is learnt is kept, and the next run asks on
_NAMED = 5  # verdicts that are told one by one; more are counted


def tell(run_dir: Path, summary: RunSummary, cache: LedgerCache | None = None) -> dict[str, str]:
    """Return, by claim, how often it was judged before this run and how; claims that never were are left out."""
    claims = [claim for claim in summary.claims.values() if _is_judged_ratio(claim)]
    if not claims or not _is_of_this_box(run_dir, summary):
        return {}
    folder = os.fspath(run_dir.parent)
    cache = cache if cache and cache.root == folder else LedgerCache(folder)
    entries, is_all = _same(run_dir, summary, cache)
    cache.keep()
    found = {claim.claim_id: _verdicts(claim, entries) for claim in claims}
    where = {claim.claim_id: f"this GPU, {gpu}" for claim in claims if (gpu := show(claim.gpu, 200))}
    return {
        name: in_words(verdicts, is_all=is_all, where=where.get(name, "this machine"))
        for name, verdicts in found.items()
        if verdicts
    }


def in_words(verdicts: Sequence[str], *, is_all: bool = True, where: str = "this machine") -> str:
    """Return which run of a claim this is, as `3rd run of this claim on this machine; the others: ...`."""
    which = f"{'' if is_all else 'at least the '}{_ordinal(len(verdicts) + 1)} run of this claim on {where}"
    if len(verdicts) > _NAMED:
        others = ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdicts).most_common())
    else:
        others = ", ".join(verdicts)
    return f"{which}; the other{'s' * (len(verdicts) > 1)}: {others}"


def _is_judged_ratio(claim: Claim) -> bool:
    return claim.declared is not None and claim.verdict is not None and claim.outcome != Verdict.NOT_TESTABLE


def _is_of_this_box(run_dir: Path, summary: RunSummary) -> bool:
    return summary.run is not None and summary.run.supervisor.host == host_name() and not is_imported(run_dir)


def _same(run_dir: Path, summary: RunSummary, cache: LedgerCache) -> tuple[list[Entry], bool]:
    """Return the runs before this one that are of the same claims, the oldest first, and whether all were looked at."""
    run = summary.run
    assert run is not None
    changed = {name: run.params[name] for name in run.changed if name in run.params}
    wanted = run.scenario, run.source_sha256, changed, run.supervisor.host
    entries = list(_entries(run_dir, cache))
    same = [one for one in entries if one and (one.scenario, one.source_sha256, one.changed, one.host) == wanted]
    return same[::-1], None not in entries


def _entries(run_dir: Path, cache: LedgerCache) -> Iterator[Entry | None]:
    """Yield what is known of the runs before this one with the name of its scenario, the newest first; None for unknown."""
    scenario = RunName(run_dir.name).scenario
    earlier = [name for name in runs_in(cache.root) if name < run_dir.name and RunName(name).scenario == scenario]
    read = 0
    for name in earlier:
        found = cache.known(name)
        if found is None and read < MOST_READ:
            read += 1
            found = cache.look(run_dir.parent / name)
        yield found


def _verdicts(claim: Claim, entries: Sequence[Entry]) -> list[str]:
    """Return the verdicts that some runs reached on a claim, where it was measured: another GPU is another story."""
    gpu = claim.verdict.gpu[:300] if claim.verdict else ""
    found = [verdict for one in entries if (verdict := _verdicts_on(gpu, one).get(claim.claim_id[:300]))]
    return [verdict for verdict in found if verdict != Verdict.NOT_TESTABLE]


def _verdicts_on(gpu: str, entry: Entry) -> Mapping[str, str]:
    told = zip_longest(entry.claim_keys, entry.claims, entry.claim_gpus, fillvalue="")
    return {key or claim[0]: claim[1] for key, claim, where in told if claim and where == gpu}


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
