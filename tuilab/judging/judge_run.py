"""The verdicts of a run: from what was claimed and what was measured, by a rule that has a version and no other input."""

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import asdict

from tuilab.judging.evidence import gather
from tuilab.judging.exact import judge_exact
from tuilab.judging.flaw import flaw
from tuilab.judging.judgement import Judgement
from tuilab.judging.ratio import judge_ratios
from tuilab.record import events
from tuilab.record.summary import Claim, RunSummary
from tuilab.record.verdicts import RULE, Verdict


def judge(summary: RunSummary) -> list[events.VerdictReached]:
    """Return the verdict on every claim of a run, in the order of the claims."""
    flaws = _flaws(summary)
    ratios = _judge_ratios(summary, flaws)
    repeats = summary.repeats_of()
    judged = [
        (claim, ratios.get(name) or _judge_plainly(claim, summary, flaws.get(name, ""), repeats))
        for name, claim in summary.claims.items()
    ]
    return [
        events.VerdictReached(text=claim.text, key=claim.key, rule=RULE, **asdict(found)) for claim, found in judged if found
    ]


def judge_finished(summary: RunSummary) -> dict[str, Judgement]:
    """Return, by claim, what would be said of the claims about ratios if the run had ended with its last whole repeat."""
    return _judge_ratios(summary, _flaws(summary), summary.finished_repeats())


def present_look(summary: RunSummary) -> tuple[int, int]:
    """Return the number of the last planned look that was reached (the first, before that) and how many are planned.

    A run whose time is over looks for the last time, wherever it is: not what was measured has ended it, and all the looks
    that it had left out were planned to spend error, too.
    """
    looks = sorted(summary.run.looks) if summary.run else []
    reached = len(looks) if summary.is_budget_spent else bisect_right(looks, len(summary.finished_repeats()))
    return (max(1, reached), len(looks)) if looks else (1, 1)


def judge_plainly(claim: Claim, summary: RunSummary) -> Judgement | None:
    """Judge a claim that is not about a ratio, or about one that was not measured; the run may go on."""
    return _judge_plainly(claim, summary, flaw(claim.declared) if claim.declared and _is_about_ratio(claim) else "")


def _judge_plainly(
    claim: Claim, summary: RunSummary, problem: str, repeats: Mapping[str, int] | None = None
) -> Judgement | None:
    if claim.needs:
        return Judgement(Verdict.NOT_TESTABLE, claim.needs)
    if exact := judge_exact(claim, repeats):
        return exact
    if problem:
        return Judgement(Verdict.INVALID, problem)
    return Judgement(Verdict.NOT_TESTABLE, summary.box_lacks) if summary.box_lacks else None


def _judge_ratios(
    summary: RunSummary, flaws: Mapping[str, str], writers: Collection[str] | None = None
) -> dict[str, Judgement]:
    """Judge the claims about ratios that have no flaw together, from what some workers measured, or all."""
    sound = {name: declared for name, claim in summary.claims.items() if (declared := claim.declared) and flaws.get(name) == ""}
    ratios = {name: (claim, found) for name, claim in sound.items() if (found := gather(claim, summary, writers))}
    return dict(zip(ratios, judge_ratios(list(ratios.values()), present_look(summary)), strict=True))


def _flaws(summary: RunSummary) -> dict[str, str]:
    """Return, by claim about a ratio, why it cannot be judged whatever is measured, or nothing."""
    return {name: flaw(claim.declared) for name, claim in summary.claims.items() if claim.declared and _is_about_ratio(claim)}


def _is_about_ratio(claim: Claim) -> bool:
    return claim.declared is not None and not claim.needs and not claim.measured
