"""Plan the interim analyses of a run: when its claims may be judged, and how surely.

If you judge a claim again and again and stop when the verdict suits you, you are wrong far more
often than once in twenty. The usual remedy is a group sequential design: all analyses of a run
together may be wrong as often as one, and each of them spends a share of that error.

- A run with a time budget is analysed after a few planned numbers of repeats. It ends itself at
  the first analysis that leaves no claim open.
- A run with a number of repeats is analysed after every repeat from the sixth on, because a user
  may watch the provisional verdicts and stop the run at any time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.judging import stats
from tuilab.judging.evidence import MIN_UNITS
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict
from tuilab.text.display import plural

PLANNED_ANALYSES = (6, 8, 12, 16, 24, 40)  # repeats after which a run with a budget is analysed
_MAX_REPEATS = 1000  # that `tuilab run` accepts
_BUDGET_RATE = -2.0  # spends error early: such a run ends itself as soon as it can
_WATCHED_RATE = -4.0  # keeps nearly all of the error for the end
# Share of the error that several analyses may spend. The levels of the analyses are exact for
# normally distributed means. With Student's t of 6 to 40 repeats, a run is wrong up to 1.15 times
# as often (simulated; the worst case is a watched run of 12 repeats).
_SEQUENTIAL_SHARE = 0.87


@dataclass(frozen=True)
class InterimAnalysis:
    """One analysis of a run, interim or final: how surely it decides, and which repeats it uses."""

    counts: tuple[int, ...] = (1,)  # repeats at each analysis up to this one
    spent_shares: tuple[float, ...] = (1.0,)  # of the error, spent by the end of each of them
    workers: tuple[str, ...] | None = None  # of the repeats that count; None: all
    early_stop: str = ""  # says that the run ended before it was planned to
    final: "InterimAnalysis | None" = None  # the last planned analysis; None: this one

    def confidence(self, claimed: float, claims: int = 1) -> float:
        """Return the confidence of an interval at this analysis, for one of several claims.

        It is higher than the claimed one: the claims and analyses share the error.
        """
        error = (1 - claimed) / claims
        if self.spent_shares == (1.0,):
            return 1 - error
        spent = tuple(error * _SEQUENTIAL_SHARE * share for share in self.spent_shares)
        return 1 - stats.nominal_level(self.counts, spent)

    def final_confidence(self, claimed: float, claims: int = 1) -> float:
        """Return the confidence of an interval at the last planned analysis."""
        return (self.final or self).confidence(claimed, claims)


ONLY_ANALYSIS = InterimAnalysis()


def latest_analysis(summary: RunSummary, stage: str = "") -> InterimAnalysis:
    """Return the latest analysis that a run, or a stage of a tuning, has reached.

    Before the first one, it is the first one, with the repeats that there are. A run that ended
    as planned is analysed for the last time, even if repeats failed or did not fit into its
    budget. No measured value has ended such a run, so it may spend the rest of the error.
    """
    ended = list_ended_repeats(summary, stage)
    if summary.run is None:
        return InterimAnalysis(workers=tuple(ended))
    is_budget_spent = summary.is_budget_spent or stage in summary.tuning.spent_stages
    has_budget = bool(summary.run.looks)  # `looks` is the recorded name of the planned counts
    planned_counts = _plan_counts(summary.run.repeats, summary.run.looks)
    planned_end = planned_counts[-1]
    planned_shares = _spent_shares(planned_counts, planned_end, has_budget=has_budget)

    succeeded = [name for name in ended if has_succeeded(summary, name)]
    success_count = len(succeeded)
    reached = _counts_up_to(planned_counts, success_count)
    has_failures = success_count < planned_end <= len(ended)
    is_final = is_budget_spent or has_failures
    if is_final and succeeded:  # it takes place now, whether or not it was planned for now
        reached = _counts_up_to(planned_counts, success_count - 1)
        reached.append(success_count)
    counts = reached or planned_counts[:1]
    spent_shares = _spent_shares(counts, planned_end, has_budget=has_budget)
    if is_final and succeeded:
        spent_shares[-1] = 1.0

    workers = ended
    if has_budget and not is_final:  # a planned analysis uses exactly as many repeats as planned
        workers = succeeded[: counts[-1]]
    early_stop = ""
    if not is_final:
        early_stop = _describe_early_stop(summary, success_count, reached)
    return InterimAnalysis(
        counts=tuple(counts),
        spent_shares=tuple(spent_shares),
        workers=tuple(workers),
        early_stop=early_stop,
        final=InterimAnalysis(tuple(planned_counts), tuple(planned_shares)),
    )


def decisive_analysis(repeats: int, planned: Sequence[int]) -> InterimAnalysis:
    """Return the analysis that has to be able to decide, for a plan to make sense.

    With a budget it is the first one, which may end the run. Otherwise it is the last one.
    `planned` has the numbers of repeats after which a run with a budget is analysed.
    """
    counts = _plan_counts(repeats, planned)
    planned_end = counts[-1]
    if planned:
        counts = counts[:1]
    spent_shares = _spent_shares(counts, planned_end, has_budget=bool(planned))
    return InterimAnalysis(tuple(counts), tuple(spent_shares))


def list_ended_repeats(summary: RunSummary, stage: str = "") -> list[str]:
    """Return the workers of the repeats that ended by themselves, successful or not, in order.

    A stage of a tuning has only the repeats that raced in it.
    """
    names = summary.finished_repeats()
    if stage:
        of_stage = summary.workers_of_stage(stage)
        names = [name for name in names if name in of_stage]
    ended = [name for name in names if not summary.workers[name].is_stopped]
    return sorted(ended, key=lambda name: summary.workers[name].repeat)


def can_end_run(claim: events.ClaimDeclared | None, verdict: events.VerdictReached) -> bool:
    """Return whether more repeats could not turn a verdict into a more specific one.

    REFUTED is the least specific decision. While the interval still reaches the margin, more
    repeats may turn it into NO MEANINGFUL DIFFERENCE or WEAKER THAN CLAIMED.
    """
    if verdict.verdict == Verdict.INCONCLUSIVE:
        return False
    if verdict.verdict != Verdict.REFUTED or claim is None:
        return True
    if verdict.low is None or verdict.high is None:
        return True
    if claim.op == "at_least":
        return claim.bound < 1 or verdict.high < 1 / (1 + claim.margin)
    return claim.bound > 1 or verdict.low > 1 + claim.margin


def _plan_counts(repeats: int, planned: Sequence[int]) -> list[int]:
    """Return the numbers of repeats after which a run is analysed, ascending and not empty.

    Both arguments come from the record, and a forged one may hold any number.
    """
    valid = {count for count in planned if 0 < count <= _MAX_REPEATS}
    if valid:
        return sorted(valid)
    repeats = min(repeats, _MAX_REPEATS)
    first = max(min(MIN_UNITS, repeats), 1)
    return list(range(first, repeats + 1)) or [1]


def _counts_up_to(counts: Sequence[int], limit: int) -> list[int]:
    return [count for count in counts if count <= limit]


def _spent_shares(counts: Sequence[int], planned_end: int, *, has_budget: bool) -> list[float]:
    """Return, for each analysis, which share of the error may have been spent by its end."""
    rate = _BUDGET_RATE if has_budget else _WATCHED_RATE
    shares = []
    for count in counts:
        progress = min(count / planned_end, 1.0)  # a run may have more repeats than planned
        shares.append(stats.spent_error(progress, rate))
    return shares


def has_succeeded(summary: RunSummary, name: str) -> bool:
    """Return whether a worker has ended with exit code 0."""
    exited = summary.workers[name].exited
    return exited is not None and exited.code == 0


def _describe_early_stop(summary: RunSummary, success_count: int, reached: Sequence[int]) -> str:
    """Return that a run ended before it was planned to, and which analysis judges it.

    The result is empty if the run ended at an analysis that its plan or its budget allows.
    """
    assert summary.run is not None
    planned_end = max(_plan_counts(summary.run.repeats, summary.run.looks))
    planned_counts = summary.run.looks or [planned_end]
    if summary.is_budget_spent or success_count in planned_counts or success_count > planned_end:
        return ""
    stopped = f"stopped after {success_count} of {plural(planned_end, 'repeat')}"
    if not reached:
        return f"{stopped}, before the first look"
    if summary.run.looks:
        return f"{stopped}: judged as after {reached[-1]}"
    return stopped
