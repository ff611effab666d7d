"""Compute the interim results of a run: the verdicts that its claims would get if it ended now.

They are judged by the same rule as at the end: only finished repeats count, and all claims about
ratios are judged together at the latest interim analysis. If you watch a run and stop it, you get
the verdicts that were shown.

The first of several repeats has no interval yet. An interval of its rounds would be narrower than
that of the first two repeats, as if the result became less certain with more data.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from threading import Event, Thread

from tuilab.judging.interim_analyses import PLANNED_ANALYSES, latest_analysis
from tuilab.judging.judge_run import judge_ratio_claims
from tuilab.judging.judgement import Judgement
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import DECISIONS, Verdict
from tuilab.text.display import brief, interval_words, plural


@dataclass(frozen=True)
class InterimResult:
    """The provisional judgement of a claim about a ratio."""

    claim: events.ClaimDeclared
    judgement: Judgement
    repeats: int  # that count for it
    planned_repeats: int  # at most


class InterimJudge:
    """Keeps the interim results of a run, and computes them again if another repeat has finished.

    A view asks for them ten times a second. An interval needs scipy, which a thread loads: from a
    slow disk that takes long, and meanwhile the view still has to react to Ctrl-C and to the end
    of the run. The thread starts as soon as several repeats are planned, while the workers load
    their own modules. Later, it would take half a second of a core that is being measured.
    """

    def __init__(self) -> None:
        self._repeat_count = 0
        self._results: list[InterimResult] = []
        self.is_loading = False  # scipy; until it is there, `results` returns the previous results

    def results(self, summary: RunSummary) -> list[InterimResult]:
        """Return the interim results of a run in the order of its claims.

        A claim without a measured repeat has none. A run with a single repeat has none either: as
        soon as that has ended, the verdict follows. While scipy is still being loaded, the previous
        results are returned.
        """
        if not summary.claims or summary.planned_repeats < 2:
            return []
        start_loading_scipy()
        repeat_count = len(summary.finished_repeats())
        self.is_loading = repeat_count > 1 and not _is_loaded.is_set()
        if repeat_count != self._repeat_count and not self.is_loading:
            self._repeat_count = repeat_count
            self._results = compute_interim_results(summary)
        return self._results


_is_loaded = Event()


@cache
def start_loading_scipy() -> None:
    """Load scipy in a thread. Further calls do nothing."""
    Thread(target=_load_scipy, daemon=True).start()


def _load_scipy() -> None:
    """Load scipy, and set `_is_loaded` if that succeeds."""
    # If scipy cannot be loaded, the judge of the run reports it, and there are no interim results.
    with suppress(Exception):
        from tuilab.arrays import special

        special()
        _is_loaded.set()


def compute_interim_results(summary: RunSummary) -> list[InterimResult]:
    """Return the interim results of a run in the order of its claims."""
    judgements = judge_ratio_claims(summary)
    results = []
    for name, claim in summary.claims.items():
        if claim.declared is None or name not in judgements:
            continue
        stage = summary.stage_of(claim.declared)
        repeats = len(latest_analysis(summary, stage).workers or ())
        planned_repeats = summary.planned_repeats
        if stage:  # the repeats of a tuning are those of all its stages
            planned_repeats = PLANNED_ANALYSES[-1]
        result = InterimResult(claim.declared, judgements[name], repeats, planned_repeats)
        results.append(result)
    return results


def describe_interim_result(result: InterimResult) -> str:
    """Return a sentence such as `so far SUPPORTED, two/one 1.9 [1.8, 2] after 8 of 20 repeats`."""
    claim = result.claim
    judgement = result.judgement
    parts = ["so far"]
    if judgement.verdict in DECISIONS or judgement.verdict == Verdict.INVALID:
        parts.append(f"{judgement.verdict},")
    ratio = f"{claim.over}/{claim.under}"
    if judgement.estimate is None or judgement.low is None or judgement.high is None:
        estimate = "n/a" if judgement.estimate is None else brief(judgement.estimate)
        parts.append(f"{ratio} {estimate}")
    else:
        parts.append(
            f"{ratio}"
            f" {interval_words(judgement.estimate, judgement.low, judgement.high, claim.bound)}"
        )
        if judgement.confidence is not None and judgement.confidence != claim.confidence:
            parts.append(f"at {judgement.level}")
    parts.append(f"after {result.repeats} of {plural(result.planned_repeats, 'repeat')}")
    return " ".join(parts)
