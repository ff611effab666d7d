"""How the claims about ratios stand while a run goes on: what would be said of each if the run ended now.

Only repeats that have finished count, and all claims are judged together at the last look that was reached, as at the end: who
watches and stops gets the verdict that was shown. The first of several repeats has no interval yet: that of its rounds, which
are not independent, would be narrower than that of the first two repeats, and narrow whether or not anything becomes surer.
"""

from dataclasses import dataclass

from tuilab.judging.judge_run import judge_ratio_claims
from tuilab.judging.judgement import Judgement
from tuilab.judging.looks import present_look
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import DECISIONS, Verdict
from tuilab.text import brief, brief_beside, plural


@dataclass(frozen=True)
class Standing:
    """A claim so far: its provisional judgement (estimate, interval, `more_repeats`) after the repeats that count for it."""

    claim: events.ClaimDeclared
    judgement: Judgement
    repeats: int
    planned: int  # at most


class Standings:
    """Reckons how the claims stand only when a repeat has finished since: a view asks ten times a second.

    The first time loads scipy: at the end of a repeat, when the next one imports torch and measures nothing yet.
    """

    def __init__(self) -> None:
        self._counted = 0
        self._found: list[Standing] = []

    def of(self, summary: RunSummary) -> list[Standing]:
        """Return how the claims of a run stand, in their order; a claim without a measured repeat has no standing."""
        count = len(summary.finished_repeats())
        if count != self._counted:
            self._counted = count
            self._found = standings(summary)
        return self._found


def standings(summary: RunSummary) -> list[Standing]:
    """Return how the claims of a run stand."""
    judged = judge_ratio_claims(summary)
    repeats, planned = len(present_look(summary).repeats or ()), summary.planned_repeats
    return [
        Standing(claim.declared, judged[name], repeats, planned)
        for name, claim in summary.claims.items()
        if claim.declared is not None and name in judged
    ]


def in_words(standing: Standing) -> str:
    """Return a standing for people: `so far SUPPORTED, two/one 1.9 [1.8, 2] after 8 of 20 repeats`."""
    found = standing.judgement
    ratio = f"{standing.claim.over}/{standing.claim.under}"
    parts = ["so far"]
    if found.verdict in DECISIONS or found.verdict == Verdict.INVALID:
        parts.append(f"{found.verdict},")
    parts.append(f"{ratio} n/a" if found.estimate is None else f"{ratio} {brief(found.estimate)}")
    if found.low is not None and found.high is not None:
        low, high = (brief_beside(standing.claim.bound, end) for end in (found.low, found.high))
        parts.append(f"[{low}, {high}]")
        if found.confidence is not None and found.confidence != standing.claim.confidence:
            parts.append(f"at {found.level}")
    return " ".join([*parts, f"after {standing.repeats} of {plural(standing.planned, 'repeat')}"])
