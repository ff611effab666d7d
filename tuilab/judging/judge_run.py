"""The verdicts of a run: from what was claimed and what was measured, by a rule that has a version and no other input."""

from collections.abc import Mapping
from dataclasses import asdict

from tuilab.judging.evidence import gather_evidence
from tuilab.judging.exact import judge_exact
from tuilab.judging.flaw import flaw
from tuilab.judging.judgement import Judgement
from tuilab.judging.looks import present_look
from tuilab.judging.ratio import judge_ratios
from tuilab.record import events
from tuilab.record.gpus.own_gpus import gpu_of_claim
from tuilab.record.parts import Claim
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import RULE, Verdict
from tuilab.text import plural


def judge(summary: RunSummary) -> list[events.VerdictReached]:
    """Return the verdict on every claim of a run, in the order of the claims."""
    flaws = _flaws(summary)
    ratios = _judge_ratios(summary, flaws)
    repeats = summary.repeats_of()
    judged = [
        (claim, ratios.get(name) or _judge_plainly(claim, summary, flaws.get(name, ""), repeats))
        for name, claim in summary.claims.items()
    ]
    return [_verdict(claim, found, summary) for claim, found in judged if found]


def _verdict(claim: Claim, found: Judgement, summary: RunSummary) -> events.VerdictReached:
    gpu, gpu_name = gpu_of_claim(claim, summary)
    return events.VerdictReached(text=claim.text, key=claim.key, rule=RULE, gpu=gpu, gpu_name=gpu_name, **asdict(found))


def judge_ratio_claims(summary: RunSummary) -> dict[str, Judgement]:
    """Return, by claim, what is said of the claims about ratios at the last look that was reached."""
    return _judge_ratios(summary, _flaws(summary))


def judge_plainly(claim: Claim, summary: RunSummary) -> Judgement | None:
    """Judge a claim that is not about a ratio, or about one that was not measured; the run may go on."""
    return _judge_plainly(claim, summary, _flaw(claim, summary) if _is_about_ratio(claim) else "")


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


def _judge_ratios(summary: RunSummary, flaws: Mapping[str, str]) -> dict[str, Judgement]:
    """Judge the claims about ratios that have no flaw together, at the last look that was reached."""
    look = present_look(summary)
    sound = {name: declared for name, claim in summary.claims.items() if (declared := claim.declared) and flaws.get(name) == ""}
    ratios = {name: (claim, found) for name, claim in sound.items() if (found := gather_evidence(claim, summary, look.repeats))}
    return dict(zip(ratios, judge_ratios(list(ratios.values()), look), strict=True))


def _flaws(summary: RunSummary) -> dict[str, str]:
    """Return, by claim about a ratio, why it cannot be judged whatever is measured, or nothing."""
    return {name: _flaw(claim, summary) for name, claim in summary.claims.items() if _is_about_ratio(claim)}


def _flaw(claim: Claim, summary: RunSummary) -> str:
    assert claim.declared is not None
    if problem := flaw(claim.declared):
        return problem
    if claim.is_late:
        return "it was declared after its race had begun: a bound that is chosen by what was measured proves nothing"
    if claim.others:
        first, other = (f"{one.op.replace('_', ' ')} {one.bound:g}" for one in (claim.declared, claim.others[0]))
        if first != other:
            return f"it was declared again as something else: {first} at first, then {other}"
        return "it was declared again with other arms, another margin, confidence or number of cores"
    return _describe_undeclared(claim, claim.declared, summary)


def _describe_undeclared(claim: Claim, declared: events.ClaimDeclared, summary: RunSummary) -> str:
    """Return that repeats raced the arms of a claim without declaring it, or nothing.

    A scenario that declares a claim in its last repeat alone may have seen what the others measured.
    """
    arms = {declared.over, declared.under}
    raced = {worker for worker, race in summary.races if arms <= set(race.arms)}
    undeclared = raced - claim.declared_in
    if not undeclared or not claim.declared_in:
        return ""
    count = len(raced) - len(undeclared)
    return f"it was declared in {count} of {plural(len(raced), 'repeat')} that raced its arms, and has to be in all of them"


def _is_about_ratio(claim: Claim) -> bool:
    return claim.declared is not None and not claim.needs and not claim.measured
