"""One claim in several runs: what each says of it, and how far apart they are."""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from tuilab.judging.exact import describe_value
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.record.timing.clocks import CPU, clock_of
from tuilab.runs.comparing.differences import LENGTH
from tuilab.text.display import brief, interval_words, show


@dataclass(frozen=True)
class Side:
    """What one run says of a claim."""

    verdict: str = ""  # empty: not judged, or not claimed in that run
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    measured: str = ""  # of an exact claim, in words
    why: str = ""
    op: str = ""  # of a claim about a ratio: at_least, at_most, between
    gpu: str = ""  # on which it was measured, in words; empty: on none
    is_open: bool = False  # there is no verdict yet, and the run goes on
    bound: float | None = None  # of a claim about a ratio
    clock: str = ""  # that a ratio was judged on; empty: it says nothing of one

    @property
    def ratio_words(self) -> str:
        """What was measured of a ratio, as every table tells it; nothing of another claim."""
        if self.estimate is None or self.measured:
            return ""
        if self.low is None or self.high is None:
            return f"{brief(self.estimate)}, no interval: {show(self.why.partition(';')[0], 100)}"
        on_clock = " in CPU time" if self.clock == CPU else ""
        return interval_words(self.estimate, self.low, self.high, self.bound) + on_clock


@dataclass(frozen=True)
class Shift:
    """How a later run's estimate differs from the first one's: their ratio, with an interval."""

    ratio: float
    low: float
    high: float
    lone: int = 0  # of one process: how many of the two; the interval leaves out how much one process differs from another

    @classmethod
    def of_logs(cls, middle: float, half: float, lone: int = 0) -> "Shift":
        """Return the ratio whose logarithm is `middle`, give or take `half`."""
        ratio, low, high = (
            math.exp(min(max(at, -700.0), 700.0)) for at in (middle, middle - half, middle + half)
        )
        return cls(ratio, low, high, lone)

    @property
    def words(self) -> str:
        return f"x{interval_words(self.ratio, self.low, self.high)}"

    @property
    def lone_words(self) -> str:
        """What its interval leaves out, in words."""
        return ("", ", one of one process", ", of one process each")[self.lone]

    @property
    def is_apart(self) -> bool:
        """Whether the interval leaves out 1."""
        return not self.low <= 1 <= self.high


@dataclass(frozen=True)
class ClaimPair:
    """A claim in every run."""

    text: str  # as the last of the runs that claim it has it
    key: str
    sides: tuple[Side | None, ...]  # None: not claimed there
    shifts: tuple[
        Shift | None, ...
    ] = ()  # of each run after the first, where both have an estimate
    former_keys: tuple[str, ...] = ()  # under which other runs have it

    @property
    def gpus(self) -> list[str]:
        """The GPUs on which the runs measured it; of several none is better or worse than another one."""
        return [*dict.fromkeys(side.gpu for side in self.sides if side is not None and side.gpu)]

    @property
    def is_open(self) -> bool:
        """Whether a run that goes on has not decided it yet."""
        return any(side is not None and side.is_open for side in self.sides)

    @property
    def has_other_verdicts(self) -> bool:
        """Whether runs that have said what they will say differ."""
        return (
            len({side.verdict for side in self.sides if side is not None and not side.is_open}) > 1
        )

    @property
    def has_other_values(self) -> bool:
        """Whether exact values differ, or an estimate beyond what its interval allows."""
        exact = {
            side.measured
            for side in self.sides
            if side is not None and side.measured and not side.is_open
        }
        return len(exact) > 1 or any(shift is not None and shift.is_apart for shift in self.shifts)


def pairs_of(
    summaries: Sequence[RunSummary], going_on: Container[int] = ()
) -> tuple[ClaimPair, ...]:
    """Pair claims by their keys; by their texts those that have no key, or another one in a run that does not know this one.

    `going_on` are the places of the runs that may say more.
    """
    latest = {
        claim.text: (claim.key, s.claims)
        for s in summaries
        for claim in s.claims.values()
        if claim.key
    }
    known = [{_name(claim, s, latest): claim for claim in s.claims.values()} for s in summaries]
    return tuple(
        _pair([claims.get(name) for claims in known], going_on)
        for name in dict.fromkeys(name for claims in known for name in claims)
    )


def are_apart(one: str, other: str) -> bool:
    """Say whether two claims were measured on two GPUs."""
    return bool(one and other and one != other)


def _name(
    claim: Claim, summary: RunSummary, latest: Mapping[str, tuple[str, Mapping[str, Claim]]]
) -> str:
    """Return what a claim is known by among all runs: its key, or the one that the last run with its words has for it.

    Where several claims of a run have the same words, nobody can tell which one has another key.
    """
    key, others = latest.get(claim.text, ("", {}))
    has_several = any(
        [one.text for one in known.values()].count(claim.text) > 1
        for known in (summary.claims, others)
    )
    return (
        claim.claim_id
        if not key or has_several or key in summary.claims or claim.key in others
        else key
    )


def _pair(claims: Sequence[Claim | None], going_on: Container[int]) -> ClaimPair:
    sides = tuple(
        None if claim is None else side_of(claim, is_going_on=at in going_on)
        for at, claim in enumerate(claims)
    )
    known = [claim for claim in claims if claim is not None]
    first, *others = claims
    shifts = tuple(_shift(first, other) for other in others)
    keys = [*dict.fromkeys(claim.key for claim in known if claim.key)]
    return ClaimPair(known[-1].text, keys[-1] if keys else "", sides, shifts, tuple(keys[:-1]))


def side_of(claim: Claim, *, is_going_on: bool = False) -> Side:
    """Return what a run says of a claim."""
    reached = claim.verdict
    every = [*claim.measured, *([claim.missed] if claim.missed else [])]
    measured = "; ".join(dict.fromkeys(describe_value(one.got.value, LENGTH) for one in every))[
        :LENGTH
    ]
    if reached is None:
        return Side(measured=measured, why=claim.needs, is_open=is_going_on)
    op, bound = (claim.declared.op, claim.declared.bound) if claim.declared else ("", None)
    numbers = reached.estimate, reached.low, reached.high
    return Side(
        reached.verdict,
        *numbers,
        measured,
        reached.why,
        op,
        claim.gpu,
        bound=bound,
        clock=clock_of(claim),
    )


def _shift(first: Claim | None, other: Claim | None) -> Shift | None:
    """Return the ratio of two estimates; None where one of them has none.

    Estimates are ratios with intervals that are even on a logarithmic scale, and the runs are independent: the squares of
    half the widths add up, each brought to the higher of the two confidences first.
    """
    one, two = (claim.verdict if claim else None for claim in (first, other))
    if one is None or two is None or are_apart(one.gpu, two.gpu):
        return None
    halves = [
        _half_width(one.estimate, one.low, one.high),
        _half_width(two.estimate, two.low, two.high),
    ]
    if one.estimate is None or two.estimate is None or halves[0] is None or halves[1] is None:
        return None
    confidences = [min(max(reached.confidence or 0.95, 0.5), 0.9999999) for reached in (one, two)]
    scales = [NormalDist().inv_cdf((1 + confidence) / 2) for confidence in confidences]
    half = max(scales) * math.hypot(halves[0] / scales[0], halves[1] / scales[1])
    middle = math.log(two.estimate / one.estimate)
    return Shift.of_logs(middle, half, [one.unit, two.unit].count("rounds"))


def _half_width(estimate: float | None, low: float | None, high: float | None) -> float | None:
    if (
        estimate is None
        or low is None
        or high is None
        or not 0 < low <= estimate <= high < math.inf
    ):
        return None
    return max(math.log(high / estimate), math.log(estimate / low))
