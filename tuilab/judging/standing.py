"""How the claims about ratios stand while a run goes on: what would be said of each if the run ended now.

Only repeats that have finished count, and all claims are judged together at the last look that was reached, as at the end: who
watches and stops gets the verdict that was shown. The first of several repeats has no interval yet: that of its rounds, which
are not independent, would be narrower than that of the first two repeats, and narrow whether or not anything becomes surer.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from threading import Event, Thread

from tuilab.judging.judge_run import judge_ratio_claims
from tuilab.judging.judgement import Judgement
from tuilab.judging.looks import present_look
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import DECISIONS, Verdict
from tuilab.text import brief, interval_words, plural


@dataclass(frozen=True)
class Standing:
    """A claim so far: its provisional judgement (estimate, interval, `more_repeats`) after the repeats that count for it."""

    claim: events.ClaimDeclared
    judgement: Judgement
    repeats: int
    planned: int  # at most


class Standings:
    """Reckons how the claims stand only when a repeat has finished since: a view asks ten times a second.

    An interval takes scipy, which is loaded beside the view: from a slow disk that takes long, and a view is to see the end of
    its run, and to heed Ctrl-C, meanwhile. It is loaded as soon as several repeats are planned, while the workers load theirs:
    later, the core that it takes for half a second would be one that is measured.
    """

    def __init__(self) -> None:
        self._counted = 0
        self._found: list[Standing] = []
        self.is_waiting = False  # for scipy: what is returned is older than it could be

    def of(self, summary: RunSummary) -> list[Standing]:
        """Return how the claims of a run stand, in their order; a claim without a measured repeat has no standing.

        Neither has one of a run with a single repeat: when that has ended, the verdict comes.
        """
        if not summary.claims or summary.planned_repeats < 2:
            return []
        begin_to_load()
        count = len(summary.finished_repeats())
        self.is_waiting = count > 1 and not _is_loaded.is_set()
        if count != self._counted and not self.is_waiting:
            self._counted = count
            self._found = standings(summary)
        return self._found


_is_loaded = Event()


@cache
def begin_to_load() -> None:
    """Load what an interval takes, beside what goes on."""
    Thread(target=_load, daemon=True).start()


def _load() -> None:
    with suppress(Exception):  # one that cannot be loaded is told by the judge; until then nothing is said of standings
        from tuilab.arrays import special

        special()
        _is_loaded.set()


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
    if found.estimate is None or found.low is None or found.high is None:
        parts.append(f"{ratio} {'n/a' if found.estimate is None else brief(found.estimate)}")
    else:
        parts.append(f"{ratio} {interval_words(found.estimate, found.low, found.high, standing.claim.bound)}")
        if found.confidence is not None and found.confidence != standing.claim.confidence:
            parts.append(f"at {found.level}")
    return " ".join([*parts, f"after {standing.repeats} of {plural(standing.planned, 'repeat')}"])
