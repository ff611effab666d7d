"""The verdicts of a run: from what was claimed and what was measured, by a rule that has a version and no other input."""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import asdict

from tuilab.judging.evidence import Evidence, gather
from tuilab.judging.exact import judge_exact
from tuilab.judging.judgement import Judgement
from tuilab.judging.ratio import flaw, judge_ratios
from tuilab.record import events
from tuilab.record.summary import Claim, RunSummary
from tuilab.record.verdicts import RULE, Verdict


def judge(summary: RunSummary) -> list[events.VerdictReached]:
    """Return the verdict on every claim of a run, in the order of the claims."""
    ratios = _judge_ratios(summary)
    judged = [(claim, ratios.get(name) or judge_plainly(claim, summary)) for name, claim in summary.claims.items()]
    return [
        events.VerdictReached(text=claim.text, key=claim.key, rule=RULE, **asdict(found)) for claim, found in judged if found
    ]


def judge_finished(summary: RunSummary) -> dict[str, Judgement]:
    """Return, by claim, what would be said of the claims about ratios if the run had ended with its last whole repeat."""
    return _judge_ratios(summary, summary.finished_repeats())


def present_look(summary: RunSummary) -> tuple[int, int]:
    """Return the number of the last planned look that was reached (the first, before that) and how many are planned.

    A run whose time is over looks for the last time, wherever it is: not what was measured has ended it, and all the looks
    that it had left out were planned to spend error, too.
    """
    looks = sorted(summary.run.looks) if summary.run else []
    reached = len(looks) if summary.is_budget_spent else bisect_right(looks, len(summary.finished_repeats()))
    return (max(1, reached), len(looks)) if looks else (1, 1)


def _judge_ratios(summary: RunSummary, writers: Collection[str] | None = None) -> dict[str, Judgement]:
    """Judge the claims about ratios together, from what some workers measured, or all."""
    ratios = {name: found for name, claim in summary.claims.items() if (found := _evidence(claim, summary, writers))}
    return dict(zip(ratios, judge_ratios(list(ratios.values()), present_look(summary)), strict=True))


def _evidence(
    claim: Claim, summary: RunSummary, writers: Collection[str] | None
) -> tuple[events.ClaimDeclared, Evidence] | None:
    if claim.needs or claim.measured or claim.declared is None or flaw(claim.declared):
        return None
    found = gather(claim.declared, summary, writers)
    return (claim.declared, found) if found else None


def judge_plainly(claim: Claim, summary: RunSummary) -> Judgement | None:
    """Judge a claim that is not about a ratio, or about one that was not measured."""
    if claim.needs:
        return Judgement(Verdict.NOT_TESTABLE, claim.needs)
    if claim.measured:
        return judge_exact(claim.measured)
    if claim.declared is not None and (problem := flaw(claim.declared)):
        return Judgement(Verdict.INVALID, problem)
    return Judgement(Verdict.NOT_TESTABLE, summary.box_lacks) if summary.box_lacks else None
