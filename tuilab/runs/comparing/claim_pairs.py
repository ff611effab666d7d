"""Pair the claims of several runs, and compare their verdicts and estimates."""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from tuilab.judging.exact import describe_value
from tuilab.record.events import VerdictReached
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.record.timing.clocks import CPU, clock_of
from tuilab.runs.comparing.differences import LENGTH
from tuilab.text.display import brief, interval_words, show


@dataclass(frozen=True)
class Side:
    """The result of a claim in one run."""

    verdict: str = ""  # empty: not judged, or not claimed in that run
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    measured: str = ""  # the values of an exact claim, in words
    why: str = ""
    op: str = ""  # of a claim about a ratio: at_least, at_most, between
    gpu: str = ""  # on which it was measured, in words; empty: on none
    is_open: bool = False  # there is no verdict yet, and the run is running
    bound: float | None = None  # of a claim about a ratio
    clock: str = ""  # by which a ratio was judged; empty: not known

    @property
    def ratio_words(self) -> str:
        """The estimate of a ratio with its interval, for every table; empty for another claim."""
        if self.estimate is None or self.measured:
            return ""
        if self.low is None or self.high is None:
            return f"{brief(self.estimate)}, no interval: {show(self.why.partition(';')[0], 100)}"
        words = interval_words(self.estimate, self.low, self.high, self.bound)
        if self.clock == CPU:
            words += " in CPU time"
        return words


@dataclass(frozen=True)
class Shift:
    """How a later run's estimate differs from the first one's: their ratio, with an interval."""

    ratio: float
    low: float
    high: float
    # How many of the two estimates come from one process. The interval leaves out by how much one
    # process differs from another.
    lone: int = 0

    @classmethod
    def of_logs(cls, center: float, half_width: float, lone: int = 0) -> "Shift":
        """Return the ratio with the logarithm `center`, plus or minus `half_width`."""
        ratio = _bounded_exp(center)
        low = _bounded_exp(center - half_width)
        high = _bounded_exp(center + half_width)
        return cls(ratio, low, high, lone)

    @property
    def words(self) -> str:
        return f"x{interval_words(self.ratio, self.low, self.high)}"

    @property
    def lone_words(self) -> str:
        """A remark if the interval leaves out the variation between processes."""
        return ("", ", one of one process", ", of one process each")[self.lone]

    @property
    def is_apart(self) -> bool:
        """Whether the interval excludes 1."""
        return not self.low <= 1 <= self.high


def _bounded_exp(log: float) -> float:
    """Return e to the power of a logarithm; a logarithm that would overflow is bounded first."""
    return math.exp(min(max(log, -700.0), 700.0))


@dataclass(frozen=True)
class ClaimPair:
    """A claim in every run."""

    text: str  # of the last run with the claim
    key: str
    sides: tuple[Side | None, ...]  # None: not claimed in that run
    # Of each run after the first. None unless both runs have an estimate.
    shifts: tuple[Shift | None, ...] = ()
    former_keys: tuple[str, ...] = ()  # of the claim in other runs

    @property
    def gpus(self) -> list[str]:
        """The GPUs on which the runs measured it; results of different GPUs have no order."""
        gpus = [side.gpu for side in self.sides if side is not None and side.gpu]
        return list(dict.fromkeys(gpus))

    @property
    def is_open(self) -> bool:
        """Whether a running run has not decided it yet."""
        return any(side is not None and side.is_open for side in self.sides)

    @property
    def has_other_verdicts(self) -> bool:
        """Whether runs that will not change any more have different verdicts."""
        verdicts = {side.verdict for side in self._settled_sides()}
        return len(verdicts) > 1

    @property
    def has_other_values(self) -> bool:
        """Whether exact values differ, or an estimate beyond what its interval allows."""
        measured = {side.measured for side in self._settled_sides() if side.measured}
        return len(measured) > 1 or self.has_other_estimates

    @property
    def has_other_estimates(self) -> bool:
        return any(shift is not None and shift.is_apart for shift in self.shifts)

    def _settled_sides(self) -> list[Side]:
        return [side for side in self.sides if side is not None and not side.is_open]


# ---- pairing


def pairs_of(
    summaries: Sequence[RunSummary], running: Container[int] = ()
) -> tuple[ClaimPair, ...]:
    """Pair the claims of runs by their keys, or by their texts.

    The text counts if a claim has no key, or another key in a run that does not have this one.
    `running` are the positions of the runs that may decide more claims.
    """
    latest = {}
    for summary in summaries:
        for claim in summary.claims.values():
            if claim.key:
                latest[claim.text] = (claim.key, summary.claims)
    named_claims = []  # the claims of each run, by name
    names: dict[str, None] = {}
    for summary in summaries:
        claims = {_name_of(claim, summary, latest): claim for claim in summary.claims.values()}
        named_claims.append(claims)
        names |= dict.fromkeys(claims)
    pairs = []
    for name in names:
        claims_of_name = [claims.get(name) for claims in named_claims]
        pairs.append(_pair(claims_of_name, running))
    return tuple(pairs)


def are_apart(gpu: str, other_gpu: str) -> bool:
    """Return whether two claims were measured on different GPUs."""
    return bool(gpu and other_gpu and gpu != other_gpu)


def _name_of(
    claim: Claim, summary: RunSummary, latest: Mapping[str, tuple[str, Mapping[str, Claim]]]
) -> str:
    """Return the name of a claim among all runs: its key, or the key of the last run with its text.

    `latest` has, by text, that key and all claims of that run. If several claims of a run have the
    same text, the key of another run cannot be assigned, so the claim keeps its own name.
    """
    key, latest_claims = latest.get(claim.text, ("", {}))
    if not key or key in summary.claims or claim.key in latest_claims:
        return claim.claim_id
    for claims in (summary.claims, latest_claims):
        if [candidate.text for candidate in claims.values()].count(claim.text) > 1:
            return claim.claim_id
    return key


def _pair(claims: Sequence[Claim | None], running: Container[int]) -> ClaimPair:
    """Return the pair of the claims of each run; None for a run that does not have the claim."""
    sides = []
    for position, claim in enumerate(claims):
        side = None
        if claim:
            side = side_of(claim, is_running=position in running)
        sides.append(side)
    first, *later = claims
    shifts = [_shift(first, claim) for claim in later]
    recorded = [claim for claim in claims if claim is not None]
    keys = list(dict.fromkeys(claim.key for claim in recorded if claim.key))
    *former_keys, key = keys or [""]
    return ClaimPair(recorded[-1].text, key, tuple(sides), tuple(shifts), tuple(former_keys))


def side_of(claim: Claim, *, is_running: bool = False) -> Side:
    """Return the result of a claim in a run."""
    records = list(claim.measured)
    if claim.missed:
        records.append(claim.missed)
    values = dict.fromkeys(describe_value(record.got.value, LENGTH) for record in records)
    measured = "; ".join(values)[:LENGTH]
    verdict = claim.verdict
    if verdict is None:
        return Side(measured=measured, why=claim.needs, is_open=is_running)
    op = ""
    bound = None
    if claim.declared:
        op = claim.declared.op
        bound = claim.declared.bound
    return Side(
        verdict=verdict.verdict,
        estimate=verdict.estimate,
        low=verdict.low,
        high=verdict.high,
        measured=measured,
        why=verdict.why,
        op=op,
        gpu=claim.gpu,
        bound=bound,
        clock=clock_of(claim),
    )


# ---- the ratio of two estimates


def _shift(first: Claim | None, later: Claim | None) -> Shift | None:
    """Return the ratio of the estimates of two runs; None if one of them has none.

    Estimates are ratios, their intervals are symmetric on a logarithmic scale, and the runs are
    independent. So the squares of the half widths add up, after each was brought to the higher one
    of the two confidences.
    """
    first_verdict = first.verdict if first else None
    later_verdict = later.verdict if later else None
    if first_verdict is None or later_verdict is None:
        return None
    if are_apart(first_verdict.gpu, later_verdict.gpu):
        return None
    first_interval = _read_interval(first_verdict)
    later_interval = _read_interval(later_verdict)
    if first_interval is None or later_interval is None:
        return None
    first_estimate, first_half = first_interval
    later_estimate, later_half = later_interval
    first_scale = _half_width_in_sd(first_verdict)
    later_scale = _half_width_in_sd(later_verdict)
    error = math.hypot(first_half / first_scale, later_half / later_scale)
    half_width = max(first_scale, later_scale) * error
    center = math.log(later_estimate / first_estimate)
    lone = [first_verdict.unit, later_verdict.unit].count("rounds")
    return Shift.of_logs(center, half_width, lone)


def _read_interval(verdict: VerdictReached) -> tuple[float, float] | None:
    """Return the estimate of a verdict and the half width of its interval, as a logarithm.

    None if there is no interval, or if it cannot be that of a ratio.
    """
    estimate = verdict.estimate
    low = verdict.low
    high = verdict.high
    if estimate is None or low is None or high is None:
        return None
    if not 0 < low <= estimate <= high < math.inf:
        return None
    log_above = math.log(high / estimate)
    log_below = math.log(estimate / low)
    return estimate, max(log_above, log_below)


def _half_width_in_sd(verdict: VerdictReached) -> float:
    """Return the half width of an interval of a verdict's confidence, in standard deviations."""
    confidence = min(max(verdict.confidence or 0.95, 0.5), 0.9999999)
    return NormalDist().inv_cdf((1 + confidence) / 2)
