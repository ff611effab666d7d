"""Compute the verdicts of a run.

A verdict depends on the claims, the measurements and the version of the rule, and on nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from tuilab.judging.evidence import gather_evidence
from tuilab.judging.exact import judge_exact
from tuilab.judging.interim_analyses import latest_analysis
from tuilab.judging.is_judgeable import find_flaw
from tuilab.judging.judgement import Judgement
from tuilab.judging.ratio import judge_ratios
from tuilab.record import events
from tuilab.record.gpus.own_gpus import gpu_of_claim
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.record.verdicts import RULE, Verdict
from tuilab.text.display import plural


def judge(summary: RunSummary) -> list[events.VerdictReached]:
    """Return the verdicts on the claims of a run, in the order of the claims.

    A claim has no verdict if it was not measured, unless it needs no measurement: it cannot be
    tested here, or it has a flaw.
    """
    flaws = _find_flaws(summary)
    judgements = _judge_ratios(summary, flaws)
    repeat_of_worker = summary.repeats_of()
    verdicts = []
    for name, claim in summary.claims.items():
        judgement = judgements.get(name)
        if judgement is None:
            flaw = flaws.get(name, "")
            judgement = _judge_without_times(claim, summary, flaw, repeat_of_worker)
        if judgement is not None:
            verdicts.append(_make_verdict(claim, judgement, summary))
    return verdicts


def judge_ratio_claims(summary: RunSummary) -> dict[str, Judgement]:
    """Return the judgements of all claims about ratios by name, at the latest interim analysis."""
    return _judge_ratios(summary, _find_flaws(summary))


def judge_without_times(claim: Claim, summary: RunSummary) -> Judgement | None:
    """Return the judgement of a claim if it does not depend on measured times, else None.

    The run may still be in progress.
    """
    flaw = _find_flaw(claim, summary) if _is_about_ratio(claim) else ""
    return _judge_without_times(claim, summary, flaw)


def _judge_without_times(
    claim: Claim, summary: RunSummary, flaw: str, repeat_of_worker: Mapping[str, int] | None = None
) -> Judgement | None:
    """Return the judgement of a claim that needs no times; None if times have to decide.

    It cannot be tested here, it is exact and was measured, or it has a flaw. `flaw` is empty if it
    has none. With `repeat_of_worker`, an exact claim says in how many repeats it was measured.
    """
    if claim.needs:
        return Judgement(Verdict.NOT_TESTABLE, claim.needs)
    if exact := judge_exact(claim, repeat_of_worker):
        return exact
    if flaw:
        return Judgement(Verdict.INVALID, flaw)
    if summary.box_lacks:
        return Judgement(Verdict.NOT_TESTABLE, summary.box_lacks)
    return None


def _judge_ratios(summary: RunSummary, flaws: Mapping[str, str]) -> dict[str, Judgement]:
    """Judge the claims about ratios that have no flaw, together and at the latest analysis.

    The stages of a tuning are judged one by one, because each has repeats of its own. In all other
    runs, all claims are of one stage.
    """
    names_of_stages: dict[str, list[str]] = {}
    for name, claim in summary.claims.items():
        if claim.declared is None or flaws.get(name) != "":  # None: no claim about a ratio
            continue
        stage = summary.stage_of(claim.declared)
        names_of_stages.setdefault(stage, []).append(name)
    judgements: dict[str, Judgement] = {}
    for stage, names in names_of_stages.items():
        judgements |= _judge_stage(summary, stage, names)
    return judgements


def _judge_stage(summary: RunSummary, stage: str, names: Sequence[str]) -> dict[str, Judgement]:
    """Judge the claims with these names together; return the judgements of those with evidence."""
    analysis = latest_analysis(summary, stage)
    pairs = {}
    for name in names:
        declared = summary.claims[name].declared
        assert declared is not None
        evidence = gather_evidence(declared, summary, analysis.workers)
        if evidence is not None:
            pairs[name] = (declared, evidence)
    judgements = judge_ratios(list(pairs.values()), analysis)
    return dict(zip(pairs, judgements, strict=True))


def _make_verdict(claim: Claim, judgement: Judgement, summary: RunSummary) -> events.VerdictReached:
    """Return the record of a verdict: the judgement, the rule, and the GPU if there is one."""
    gpu, gpu_name = gpu_of_claim(claim, summary)
    return events.VerdictReached(
        text=claim.text,
        key=claim.key,
        rule=RULE,
        gpu=gpu,
        gpu_name=gpu_name,
        **asdict(judgement),
    )


# ---- flaws of a claim about a ratio


def _find_flaws(summary: RunSummary) -> dict[str, str]:
    """Return the flaw of each claim about a ratio by name; an empty string if it has none."""
    flaws = {}
    for name, claim in summary.claims.items():
        if _is_about_ratio(claim):
            flaws[name] = _find_flaw(claim, summary)
    return flaws


def _is_about_ratio(claim: Claim) -> bool:
    return claim.declared is not None and not claim.needs and not claim.measured


def _find_flaw(claim: Claim, summary: RunSummary) -> str:
    """Return why a claim cannot be judged whatever is measured, or an empty string."""
    assert claim.declared is not None
    if flaw := find_flaw(claim.declared):
        return flaw
    if claim.is_late:
        proves_nothing = "a bound that is chosen by what was measured proves nothing"
        return f"it was declared after its race had begun: {proves_nothing}"
    if claim.others:
        return _describe_redeclaration(claim.declared, claim.others[0])
    return _describe_missing_declaration(claim, claim.declared, summary)


def _describe_redeclaration(first: events.ClaimDeclared, second: events.ClaimDeclared) -> str:
    """Return how the second declaration of a claim differs from the first one."""
    first_bound = _describe_bound(first)
    second_bound = _describe_bound(second)
    if first_bound != second_bound:
        bounds = f"{first_bound} at first, then {second_bound}"
        return f"it was declared again as something else: {bounds}"
    return "it was declared again with other arms, another margin, confidence or number of cores"


def _describe_bound(declared: events.ClaimDeclared) -> str:
    return f"{declared.op.replace('_', ' ')} {declared.bound:g}"


def _describe_missing_declaration(
    claim: Claim, declared: events.ClaimDeclared, summary: RunSummary
) -> str:
    """Return that repeats raced the arms of a claim without declaring it, or an empty string.

    A scenario that declares a claim in its last repeat alone may have seen what the others
    measured.
    """
    arms = {declared.over, declared.under}
    stage = summary.stage_of(declared)
    raced = set()
    for worker, race in summary.races:
        if race.stage == stage and arms <= set(race.arms):
            raced.add(worker)
    undeclared = raced - claim.declared_in
    if not undeclared or not claim.declared_in:
        return ""
    declared_count = len(raced) - len(undeclared)
    repeats = f"{declared_count} of {plural(len(raced), 'repeat')} that raced its arms"
    return f"it was declared in {repeats}, and has to be in all of them"
