"""The looks at a run: after how many repeats it may be judged, and how much of a claim's error each look may spend.

Whoever looks again and again and stops when it suits is wrong far more often than once in twenty, unless all looks together
spend no more error than one may. So each has its share: with a budget there are six, with a number of repeats there is one
after every repeat from the sixth on, because anybody may watch how the claims stand, and stop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.judging import stats
from tuilab.judging.evidence import MIN_UNITS
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict
from tuilab.text import plural

PLANNED = (6, 8, 12, 16, 24, 40)  # repeats after which a run with a budget is looked at
_MOST = 1000  # repeats, as `tuilab run` takes them
_PLANNED_RATE = -2.0  # a run that ends itself may as well end early
_WATCHED_RATE = -4.0  # one that is watched keeps nearly all for its end
# Of the error, what several looks may spend: their levels are those of a normal walk, and Student's t of six to forty repeats
# leaves it up to 1.15 times as often (simulated; worst for a watched run of 12).
_WALK = 0.87


@dataclass(frozen=True)
class Look:
    """One of the looks at a run: how surely it may decide, and which repeats count for it."""

    counts: tuple[int, ...] = (1,)  # repeats at the looks up to this one
    shares: tuple[float, ...] = (1.0,)  # of the error that may have been spent by each of them
    repeats: tuple[str, ...] | None = None  # the workers of those that count; None: all
    words: str = ""  # where the run ended before it was meant to
    last: "Look | None" = None  # that is planned; None: this one

    def confidence(self, confidence: float, among: int = 1) -> float:
        """Return the confidence of an interval at this look, for one among several claims."""
        error = (1 - confidence) / among
        if self.shares == (1.0,):
            return 1 - error
        return 1 - stats.nominal_level(self.counts, tuple(error * _WALK * share for share in self.shares))

    def final_confidence(self, confidence: float, among: int = 1) -> float:
        """Return the same at the last look that is planned."""
        return (self.last or self).confidence(confidence, among)


ALONE = Look()


def present_look(summary: RunSummary) -> Look:
    """Return the last look at a run that was reached; before the first one, that one with what there is.

    A run that has ended as it was meant to is judged for the last time, however many of its
    repeats failed or fitted into its budget. No measured value has ended it, so that it may spend
    what is left of the error.
    """
    ended = repeats_that_ended(summary)
    if summary.run is None:
        return Look(repeats=tuple(ended))
    counts = _planned_counts(summary.run.repeats, summary.run.looks)
    shares = _shares(counts, summary.run.looks)
    last = Look(tuple(counts), tuple(shares.values()))
    count = sum(_is_well(summary, name) for name in ended)
    reached = [number for number in counts if number <= count]
    has_lost_some = count < counts[-1] <= len(ended)
    is_last = summary.is_budget_spent or has_lost_some
    if is_last and count:
        reached = [*(number for number in counts if number < count), count]
        shares[count] = 1.0
    looks = reached or counts[:1]
    used = ended
    if summary.run.looks and not is_last:
        used = [name for name in ended if _is_well(summary, name)][: looks[-1]]
    return Look(
        tuple(looks),
        tuple(shares[number] for number in looks),
        tuple(used),
        "" if is_last else _early(summary, count, reached),
        last,
    )


def decisive_look(repeats: int, looks: Sequence[int]) -> Look:
    """Return the look that a plan is to be measured by: the first with a budget, which may end the run, else the last."""
    counts = _planned_counts(repeats, looks)
    some = counts[:1] if looks else counts
    return Look(tuple(some), tuple(_shares(counts, looks)[number] for number in some))


def repeats_that_ended(summary: RunSummary) -> list[str]:
    """Return the workers of the repeats that have ended by themselves, well or not, in their order."""
    ended = [name for name in summary.finished_repeats() if not summary.workers[name].is_stopped]
    return sorted(ended, key=lambda name: summary.workers[name].repeat)


def says_all(declared: events.ClaimDeclared | None, reached: events.VerdictReached) -> bool:
    """Say whether no further repeat could turn a verdict into one that says more: only then may it end a run.

    REFUTED says least: NO MEANINGFUL DIFFERENCE or WEAKER may follow while the interval reaches the margin.
    """
    if reached.verdict == Verdict.INCONCLUSIVE:
        return False
    if reached.verdict != Verdict.REFUTED or declared is None or reached.low is None or reached.high is None:
        return True
    if declared.op == "at_least":
        return declared.bound < 1 or reached.high < 1 / (1 + declared.margin)
    return declared.bound > 1 or reached.low > 1 + declared.margin


def _planned_counts(repeats: int, looks: Sequence[int]) -> list[int]:
    """Return the repeats after which a run is looked at; a record that was made up may plan none, or endlessly many."""
    repeats = min(repeats, _MOST)
    planned = {look for look in looks if 0 < look <= _MOST}
    return sorted(planned) or list(range(max(min(MIN_UNITS, repeats), 1), repeats + 1)) or [1]


def _shares(counts: Sequence[int], looks: Sequence[int]) -> dict[int, float]:
    """Return by look which share of the error may have been spent by then."""
    rate = _PLANNED_RATE if looks else _WATCHED_RATE
    return {number: stats.spent(number / counts[-1], rate) for number in counts}


def _is_well(summary: RunSummary, name: str) -> bool:
    exited = summary.workers[name].exited
    return exited is not None and exited.code == 0


def _early(summary: RunSummary, count: int, reached: Sequence[int]) -> str:
    """Return that a run ended before it was meant to, and what is then judged; nothing where its plan or budget ended it."""
    assert summary.run is not None
    planned, looks = max(_planned_counts(summary.run.repeats, summary.run.looks)), summary.run.looks
    if summary.is_budget_spent or count in (looks or [planned]) or count > planned:
        return ""
    words = f"stopped after {count} of {plural(planned, 'repeat')}"
    if not reached:
        return f"{words}, before the first look"
    return f"{words}: judged as after {reached[-1]}" if looks else words
