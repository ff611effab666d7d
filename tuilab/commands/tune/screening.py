"""Try each treatment in one process, and choose which are compared with the unchanged script.

One process decides nothing about a gain. It shows that a treatment fails, does nothing, takes too
much memory or time, or is clearly slower.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tuilab.commands.run_command import was_stopped
from tuilab.commands.tune import limits
from tuilab.commands.tune.combination import group_of
from tuilab.commands.tune.planning.plan import refine
from tuilab.commands.tune.session import TuningSession, arm_of
from tuilab.commands.tune.trial import Trial
from tuilab.record.events import TreatmentPlanned, TreatmentTried
from tuilab.record.tuning.outcomes import Outcome
from tuilab.record.tuning.stages import SCREENING
from tuilab.text.display import brief

_BOUND = "bound"  # a treatment that only shows what others can gain


class Screened(NamedTuple):
    """A treatment that may be compared."""

    planned: TreatmentPlanned
    tried: TreatmentTried
    process_s: float


def screen(
    session: TuningSession,
    planned: Sequence[TreatmentPlanned],
    base: Trial,
    steps: int,
    process_sd: float,
) -> str:
    """Try the treatments that the plan has not ruled out; return why no comparison follows.

    The text is empty if there is something to compare. `process_sd` is the standard deviation
    between processes.
    """
    waiting = [treatment for treatment in planned if not treatment.outcome]
    count = len(waiting)
    screened: list[Screened] = []
    while waiting:
        treatment = waiting.pop(0)
        session.report_progress(count - len(waiting) - 1, count, SCREENING)
        if not _has_time_for_another(session, screened, base):
            waiting.insert(0, treatment)
            break
        trial = session.run(
            arm_of(treatment), steps=steps, limit_s=session.limit_s(base.ended.elapsed_s)
        )
        if was_stopped():
            return ""
        tried = describe_trial(treatment, trial, base)
        session.journal.append(tried)
        session.record_end_of(treatment, tried.outcome, tried.why)
        if treatment.learns == _BOUND and tried.ratio is not None:
            waiting = _lower_bounds(session, waiting, tried.ratio, process_sd)
        elif not tried.outcome:
            screened.append(Screened(treatment, tried, trial.ended.elapsed_s))
    minutes = _minutes_for_all(session, screened, len(waiting), base)
    for treatment in waiting:
        why = f"the budget has no time to try it; --budget {minutes}m is probably enough"
        session.journal.append(
            TreatmentTried(arm=treatment.arm, outcome=Outcome.NOT_COMPARED, why=why)
        )
    if screened and _choose(session, screened, base):
        return ""
    if screened or waiting:
        return (
            f"nothing was compared: the budget is too short; --budget {minutes}m is probably enough"
        )
    return "nothing was compared: no treatment is worth it"


def _has_time_for_another(
    session: TuningSession, screened: Sequence[Screened], base: Trial
) -> bool:
    """Return whether another treatment can be tried.

    Screening may take its share of the budget. If it has found nothing to compare by then, it goes
    on as long as something could still be compared.
    """
    if screened:
        return session.elapsed_s < limits.STUDY_SHARE * session.order.budget_s
    return session.left_s > _least_comparison_s(base.ended.elapsed_s)


def _least_comparison_s(process_s: float) -> float:
    """Return how long it takes to try one treatment, and to compare it as often as necessary."""
    return (1 + limits.LEAST_ROUNDS * 3) * process_s  # the base runs twice in each round


def _lower_bounds(
    session: TuningSession,
    waiting: Sequence[TreatmentPlanned],
    ideal_ratio: float,
    process_sd: float,
) -> list[TreatmentPlanned]:
    """Return the treatments that are still worth a process after the ideal loader was tried.

    What has changed in the plan is recorded.
    """
    refined = refine(waiting, ideal_ratio, process_sd)
    for treatment in refined:
        if treatment not in waiting:
            session.journal.append(treatment)
    return [treatment for treatment in refined if not treatment.outcome]


def describe_trial(treatment: TreatmentPlanned, trial: Trial, base: Trial) -> TreatmentTried:
    """Return the record of a process with a treatment."""
    reports = []
    for report in trial.ended.watched.treated():
        # The others are failures of our own code that concern no treatment.
        if report.treatment in treatment.treatments:
            reports.append(report)
    outcome = trial.outcome
    why = trial.why
    did = [report.did for report in reports if report.did]
    if not outcome and treatment.treatments and not did:
        outcome = Outcome.NOT_APPLICABLE
        why = "it did nothing"
        if reports:
            why = reports[0].why
            if reports[0].is_already_set:
                outcome = Outcome.ALREADY_SET
    has_graphs = any(report.graphs for report in reports)
    if not outcome and treatment.name == "compile" and not has_graphs:
        outcome = Outcome.NOT_APPLICABLE
        why = "torch.compile made no graph"
    ratio = _ratio(base.step_s, trial.step_s)
    if not outcome and ratio is not None and _is_slower(trial, base):
        outcome = Outcome.NOT_COMPARED
        why = f"its first process was slower: {brief(ratio)}x"
    tried = TreatmentTried(
        arm=treatment.arm,
        outcome=outcome,
        why=why,
        did=did,
        step_s=trial.step_s,
        ratio=ratio,
        peak_bytes=trial.peak_bytes or None,
        base_peak_bytes=base.peak_bytes or None,
    )
    for report in reports:
        if report.graphs is not None:
            tried.graphs = report.graphs
            tried.compile_s = report.compile_s
    return tried


def _is_slower(trial: Trial, base: Trial) -> bool:
    """Return whether a step is clearly slower on each clock that was read.

    On a busy machine, a step may take long because it waits for a core. Then its CPU time shows
    that the treatment is not the cause.
    """
    ratios = [_ratio(base.step_s, trial.step_s), _ratio(base.cpu_s, trial.cpu_s)]
    known = [ratio for ratio in ratios if ratio is not None]
    return bool(known) and max(known) < limits.SLOWEST


def _ratio(base_s: float | None, treated_s: float | None) -> float | None:
    """Return the time of the base divided by that of a treatment; None if one is unknown."""
    if not base_s or not treated_s:
        return None
    return base_s / treated_s


def _choose(
    session: TuningSession, screened: Sequence[Screened], base: Trial
) -> list[TreatmentPlanned]:
    """Return as many treatments as the budget can compare, the most promising first.

    Time for a combination is kept only if the rest is enough to compare several treatments that can
    be combined.
    """
    fastest_first = sorted(screened, key=lambda each: each.tried.ratio or 0.0, reverse=True)
    left_s = session.left_s
    kept_s = limits.COMBINATION_SHARE * session.order.budget_s
    compared = _fit(fastest_first, base, left_s - kept_s)
    if len({group_of(planned) for planned in compared}) < 2:
        compared = _fit(fastest_first, base, left_s)
    for each in fastest_first:
        if each.planned not in compared:
            why = "the budget is too short to compare it; raise --budget"
            session.journal.append(
                msgspec.structs.replace(each.tried, outcome=Outcome.NOT_COMPARED, why=why)
            )
    return compared


def _minutes_for_all(
    session: TuningSession, screened: Sequence[Screened], waiting: int, base: Trial
) -> int:
    """Return a budget in whole minutes in which all treatments can be tried and compared.

    `waiting` is the number of those that were not tried. Their processes are assumed to take as
    long as that of the unchanged script.
    """
    base_s = base.ended.elapsed_s
    round_s = (2 + waiting) * base_s + sum(each.process_s for each in screened)
    study_s = session.elapsed_s + waiting * base_s
    comparison_s = limits.LEAST_ROUNDS * round_s
    return math.ceil((study_s + comparison_s) / (1 - limits.COMBINATION_SHARE) / 60)


def _fit(fastest_first: Sequence[Screened], base: Trial, left_s: float) -> list[TreatmentPlanned]:
    """Return the treatments for which enough rounds fit into the time that is left."""
    fitting = []
    round_s = 2 * base.ended.elapsed_s  # the base runs twice
    for each in fastest_first:
        if (round_s + each.process_s) * limits.LEAST_ROUNDS <= left_s:
            round_s += each.process_s
            fitting.append(each.planned)
    return fitting
