"""The verdicts of a run: from what was claimed and what was measured, by a rule that has a version and no other input."""

from bisect import bisect_right
from dataclasses import asdict

from tuilab import events
from tuilab.evidence import Evidence, gather
from tuilab.exact import judge_exact
from tuilab.judgement import RULE, Judgement, Verdict
from tuilab.ratio import flaw, judge_ratio, judge_ratios
from tuilab.summary import Claim, RunSummary


def judge(summary: RunSummary) -> list[events.VerdictReached]:
    """Return the verdict on every claim of a run, in the order of the claims."""
    ratios = {text: found for text, claim in summary.claims.items() if (found := _evidence(claim, summary))}
    together = dict(zip(ratios, judge_ratios(list(ratios.values()), present_look(summary)), strict=True))
    judged = [(claim.text, together.get(text) or _judge_plainly(claim, summary)) for text, claim in summary.claims.items()]
    return [events.VerdictReached(text=text, rule=RULE, **asdict(found)) for text, found in judged if found]


def judge_claim(claim: Claim, summary: RunSummary) -> Judgement | None:
    """Return what can be said of a claim so far, as if it were alone; None while nothing was measured for it."""
    if found := _evidence(claim, summary):
        return judge_ratio(*found, present_look(summary))
    return _judge_plainly(claim, summary)


def present_look(summary: RunSummary) -> tuple[int, int]:
    """Return the number of the last planned look that was reached (the first, before that) and how many are planned."""
    looks = sorted(summary.run.looks) if summary.run else []
    workers = [worker for worker in summary.workers.values() if worker.exited and worker.started and not worker.started.arm]
    return (max(1, bisect_right(looks, len(workers))), len(looks)) if looks else (1, 1)


def _evidence(claim: Claim, summary: RunSummary) -> tuple[events.ClaimDeclared, Evidence] | None:
    if claim.needs or claim.measured or claim.declared is None or flaw(claim.declared):
        return None
    found = gather(claim.declared, summary)
    return (claim.declared, found) if found else None


def _judge_plainly(claim: Claim, summary: RunSummary) -> Judgement | None:
    """Judge a claim that is not about a ratio, or about one that was not measured."""
    if claim.needs:
        return Judgement(Verdict.NOT_TESTABLE, claim.needs)
    if claim.measured:
        return judge_exact(claim.measured)
    if claim.declared is not None and (problem := flaw(claim.declared)):
        return Judgement(Verdict.INVALID, problem)
    return Judgement(Verdict.NOT_TESTABLE, summary.box_lacks) if summary.box_lacks else None
