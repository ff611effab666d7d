"""Decide what a worker of a tuning does after the study: another repeat, another stage, or nothing.

The decision rests on the record alone, and on the time that is left. A stage ends when its claims
are decided, or when its share of the budget is spent.
"""

from collections.abc import Sequence

from tuilab.commands.tune import limits
from tuilab.commands.tune.combination import combine, group_of
from tuilab.commands.tune.comparison import RacedArm, Round
from tuilab.commands.tune.session import TuningSession, arm_of, claim_text
from tuilab.engine.messages import CommandArm, WorkerResult
from tuilab.judging.interim_analyses import (
    PLANNED_ANALYSES,
    can_end_run,
    has_succeeded,
    list_ended_repeats,
)
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.outcomes import is_only_learning_open, learning_of
from tuilab.record.tuning.stages import COMBINING, COMPARING
from tuilab.text.display import plural


def go_on(session: TuningSession) -> tuple[WorkerResult, int]:
    """Do the next repeat of the tuning, or say why it is enough."""
    tuning = session.summary.tuning
    if not tuning.combinations:
        arms = compared_arms(session.summary)
        reason = _why_over(session, COMPARING, arms)
        if not reason:
            turn = _count_repeats(session.summary, COMPARING)
            return Round(session, COMPARING, arms, turn).run()
        combinations = combine(session.summary, verdicts_by_arm(session.summary))
        if not combinations:
            return WorkerResult(enough=reason), 0
        if not _has_time_for(session, combinations):
            reason += "; no time was left to compare a combination of the winners"
            return WorkerResult(enough=reason), 0
        for combination in combinations:
            session.journal.append(combination)
            tuning.combinations.append(combination)
    arms = combined_arms(session.summary)
    reason = _why_over(session, COMBINING, arms)
    if reason:
        return WorkerResult(enough=reason), 0
    turn = _count_repeats(session.summary, COMBINING)
    return Round(session, COMBINING, arms, turn).run()


def _has_time_for(session: TuningSession, combinations: Sequence[events.TuningCombined]) -> bool:
    """Return whether enough repeats of a combination fit into the time that is left."""
    plan = session.summary.tuning.plan
    assert plan is not None
    best_ones = {combination.best for combination in combinations}
    processes = 2 + len(best_ones) + len(combinations)  # the base runs twice
    needed_s = limits.LEAST_ROUNDS * processes * plan.process_s
    return needed_s <= session.left_s


# ---- the arms of a stage


def compared_arms(summary: RunSummary) -> list[RacedArm]:
    """Return the treatments that are still compared with the unchanged script."""
    arms = []
    for name, planned in summary.tuning.treatments.items():
        tried = summary.tuning.tried.get(name)
        if planned.outcome or tried is None or tried.outcome or planned.learns == "bound":
            continue
        claim = _make_claim(name, claim_text(planned), limits.BASE, name)
        arms.append(RacedArm(arm_of(planned), planned.learns, [claim]))
    return arms


def combined_arms(summary: RunSummary) -> list[RacedArm]:
    """Return the arms of the combination: the best treatment alone, then each combination."""
    tuning = summary.tuning
    arms = []
    for best in dict.fromkeys(combination.best for combination in tuning.combinations):
        planned = tuning.treatments[best]
        arms.append(RacedArm(arm_of(planned), planned.learns, []))
    for combination in tuning.combinations:
        if _has_failed(summary, combination.arm):
            continue
        title = " and ".join(tuning.treatments[part].title for part in combination.parts)
        best_title = tuning.treatments[combination.best].title
        name = combination.arm
        claims = [
            _make_claim(
                name, f"{title} are together faster than the unchanged script", limits.BASE, name
            ),
            _make_claim(
                f"{name}-best",
                f"{title} are together faster than {best_title} alone",
                combination.best,
                name,
            ),
        ]
        arms.append(RacedArm(_combined_arm(summary, combination), combination.learns, claims))
    return arms


def _combined_arm(summary: RunSummary, combination: events.TuningCombined) -> CommandArm:
    """Return the arm that applies all parts of a combination, in their order."""
    arm = CommandArm(name=combination.arm)
    for part in combination.parts:
        planned = summary.tuning.treatments[part]
        arm.env = {**arm.env, **planned.env}
        arm.prefix = [*arm.prefix, *planned.prefix]
        arm.treatments = [*arm.treatments, *planned.treatments]
    return arm


def _has_failed(summary: RunSummary, arm: str) -> bool:
    tried = summary.tuning.tried.get(arm)
    return tried is not None and bool(tried.outcome)


def _make_claim(key: str, text: str, over: str, under: str) -> events.ClaimDeclared:
    """Return the claim that the arm `under` is faster than the arm `over`."""
    return events.ClaimDeclared(
        text=text, key=key, over=over, under=under, op="at_least", bound=1.0
    )


# ---- when a stage is over


def _why_over(session: TuningSession, stage: str, arms: Sequence[RacedArm]) -> str:
    """Return why a stage needs no further repeat; an empty string if it needs one.

    If its share of the budget is spent, that is recorded: the verdicts depend on it.
    """
    claims = [claim for raced in arms for claim in raced.claims]
    if not claims:
        return "no treatment is left to compare"
    summary = session.summary
    count = _count_repeats(summary, stage)
    if count in PLANNED_ANALYSES and _are_decided(summary, claims):
        return f"decided after {plural(count, 'repeat')}"
    if count >= PLANNED_ANALYSES[-1]:
        return f"the most repeats that are planned: {count}"
    if not count:
        return ""
    left_s = session.left_s - _longest_repeat_s(summary, stage)
    # Before a claim can be decided at all, a repeat may exceed the budget a little.
    most_overrun_s = 0.0
    if count < limits.LEAST_ROUNDS:
        most_overrun_s = limits.OVERRUN_SHARE * session.order.budget_s
    if left_s < -most_overrun_s:
        session.journal.append(events.BudgetSpent(repeats=count, stage=stage))
        summary.tuning.spent_stages.add(stage)
        return f"the budget of {session.order.budget_s:g} s is spent"
    if stage == COMPARING and _makes_room_for_combination(session, arms, left_s):
        return f"the rest of the budget is for a combination, after {plural(count, 'repeat')}"
    return ""


def _makes_room_for_combination(
    session: TuningSession, arms: Sequence[RacedArm], left_s: float
) -> bool:
    """Return whether the comparison ends now, so that its winners can be combined.

    This depends on what was measured. So it is not recorded as the end of the budget, at which the
    claims might spend the rest of their error: they are judged as after their last planned look.
    """
    kept_s = limits.COMBINATION_SHARE * session.order.budget_s
    if left_s > kept_s or not _may_be_combined(session.summary, arms):
        return False
    return bool(combine(session.summary, verdicts_by_arm(session.summary)))


def _may_be_combined(summary: RunSummary, arms: Sequence[RacedArm]) -> bool:
    """Return whether two of the compared treatments do not exclude each other."""
    groups = {group_of(summary.tuning.treatments[raced.arm.name]) for raced in arms}
    return len(groups) > 1


def _are_decided(summary: RunSummary, claims: Sequence[events.ClaimDeclared]) -> bool:
    """Return whether more repeats could not decide more about these claims."""
    verdicts = verdicts_by_arm(summary)
    for claim in claims:
        verdict = verdicts.get(claim.key)
        if verdict is None:
            return False
        is_decided = can_end_run(claim, verdict)
        if not is_decided and not is_only_learning_open(verdict, learning_of(claim.under, summary)):
            return False
    return True


def verdicts_by_arm(summary: RunSummary) -> dict[str, events.VerdictReached]:
    """Return the verdicts that the claims would get if the tuning ended now, by key."""
    from tuilab.judging.judge_run import judge  # it loads scipy, which takes long

    return {verdict.key: verdict for verdict in judge(summary)}


def _count_repeats(summary: RunSummary, stage: str) -> int:
    """Return how many repeats of a stage have ended well."""
    ended = list_ended_repeats(summary, stage)
    return sum(1 for name in ended if has_succeeded(summary, name))


def _longest_repeat_s(summary: RunSummary, stage: str) -> float:
    """Return how long the longest repeat of a stage took, from its start to its end."""
    longest_s = 0.0
    for name in list_ended_repeats(summary, stage):
        worker = summary.workers[name]
        if worker.started and worker.exited:
            longest_s = max(longest_s, (worker.exited.t - worker.started.t) / 1e9)
    return longest_s
