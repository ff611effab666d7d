"""Make the part of a result that is about a tuning, from the summary of its run."""

import math
from statistics import median
from typing import Any

from tuilab.record.events import TreatmentPlanned, TreatmentTried, TuningCombined
from tuilab.record.folding.arms_table import PARTS
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.outcomes import base_of, claim_of_arm, outcome_of
from tuilab.record.tuning.stages import count_processes, is_tuning
from tuilab.reports.tuning.document import (
    ResultTuning,
    TunedCombination,
    TunedRatio,
    TunedTreatment,
)
from tuilab.reports.tuning.next_commands import next_command

_MOST_STEPS = 10**12  # from which compiling pays; a larger number means never


def tuning_of(summary: RunSummary) -> ResultTuning | None:
    """Return what a tuning planned, tried and compared; None for another run."""
    tuning = summary.tuning
    if not is_tuning(summary) and not tuning.treatments:
        return None
    plan = tuning.plan
    base = base_of(summary)
    return ResultTuning(
        steps=plan.steps if plan else None,
        step_s=plan.step_s if plan else None,
        base_step_s=_base_step_s(base, summary),
        process_s=plan.process_s if plan else None,
        processes=count_processes(summary),
        base=base,
        parts=dict(plan.parts) if plan else {},
        part_s=_parts_of_step(base, summary),
        disabled=list(plan.disabled) if plan else [],
        written=list(plan.written) if plan else [],
        treatments=[_treatment(planned, summary) for planned in tuning.treatments.values()],
        combinations=[_combination(combined, summary) for combined in tuning.combinations],
    )


def _base_step_s(base: str, summary: RunSummary) -> float | None:
    """Return the median time of a step of the unchanged script; None if nothing was compared."""
    times_s = []
    for (_, arm), blocks in summary.blocks.items():
        if arm == base:
            times_s += [block.step_s for block in blocks]
    return median(times_s) if times_s else None


def _treatment(planned: TreatmentPlanned, summary: RunSummary) -> TunedTreatment:
    """Return a treatment and what it has come to."""
    tried = summary.tuning.tried.get(planned.arm)
    fields = _fields_of_arm(planned.arm, summary, tried)
    return TunedTreatment(
        **fields,
        title=planned.title,
        learns=planned.learns,
        name=planned.name,
        treatments=planned.treatments,
        env=planned.env,
        prefix=planned.prefix,
        at_most=planned.at_most,
        at_most_why=planned.at_most_why,
        memory=planned.memory,
        change=planned.change,
        diff=planned.diff,
        file=planned.file,
        line=planned.line,
        lesson=planned.lesson,
        tried_ratio=tried.ratio if tried else None,
        graphs=tried.graphs if tried else None,
        compile_s=tried.compile_s if tried else None,
        pays_from_step=_find_paying_step(tried, fields["ratio"], summary),
        next_command=next_command(planned, fields["outcome"], summary),
    )


def _combination(combined: TuningCombined, summary: RunSummary) -> TunedCombination:
    """Return a combination of treatments and what it has come to."""
    tried = summary.tuning.tried.get(combined.arm)
    titles = []
    for arm in combined.parts:
        planned = summary.tuning.treatments.get(arm)
        titles.append(planned.title if planned else arm)
    return TunedCombination(
        **_fields_of_arm(combined.arm, summary, tried),
        title=" + ".join(titles),
        learns=combined.learns,
        parts=combined.parts,
        best=combined.best,
        over_best=_ratio(combined.arm, summary, over=combined.best),
        left_out=combined.left_out,
    )


def _fields_of_arm(arm: str, summary: RunSummary, tried: TreatmentTried | None) -> dict[str, Any]:
    """Return the fields that treatments and combinations share, without title and learning."""
    outcome = outcome_of(arm, summary)
    return {
        "arm": arm,
        "outcome": outcome.outcome or None,
        "why": outcome.why,
        "ratio": _ratio(arm, summary),
        "did": tried.did if tried else [],
        "peak_bytes": tried.peak_bytes if tried else None,
        "base_peak_bytes": tried.base_peak_bytes if tried else None,
        "part_s": _parts_of_step(arm, summary),
    }


def _ratio(arm: str, summary: RunSummary, over: str = "") -> TunedRatio | None:
    """Return how much faster an arm is than the base, or than the arm `over`.

    None if no claim about them was declared.
    """
    claim = claim_of_arm(arm, summary, over)
    if claim is None or claim.declared is None:
        return None
    verdict = claim.verdict
    if verdict is None:
        return TunedRatio(claim.declared.over, None, "", None, None, None, None, None)
    return TunedRatio(
        over=claim.declared.over,
        verdict=verdict.verdict,
        why=verdict.why,
        estimate=verdict.estimate,
        low=verdict.low,
        high=verdict.high,
        confidence=verdict.confidence,
        measure=verdict.measure if verdict.estimate is not None else None,
    )


def _parts_of_step(arm: str, summary: RunSummary) -> dict[str, float]:
    """Return the seconds of each part of a step of an arm, the median of its processes."""
    values: dict[str, list[float]] = {}
    for _, race in summary.differences:
        account = race.accounts.get(arm, {})
        for name, part in PARTS.items():
            if name in account:
                values.setdefault(part, []).append(account[name])
    return {part: median(seconds) for part, seconds in values.items()}


def _find_paying_step(
    tried: TreatmentTried | None, ratio: TunedRatio | None, summary: RunSummary
) -> int | None:
    """Return the step from which a treatment has made up for compiling; None if it never does."""
    plan = summary.tuning.plan
    if tried is None or not tried.compile_s or plan is None:
        return None
    gain = tried.ratio
    if ratio is not None and ratio.estimate is not None:
        gain = ratio.estimate
    if not gain or gain <= 1:
        return None
    saved_s = plan.step_s * (1 - 1 / gain)
    if not saved_s > 0:
        return None
    steps = tried.compile_s / saved_s
    return math.ceil(steps) if steps < _MOST_STEPS else None
