"""What differs between runs: first in what was asked and where it ran, then in what came out; pure, from their summaries.

The first run is the one that the others are compared with.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from statistics import NormalDist, median
from typing import Any

from tuilab.catalogue.params import spell
from tuilab.judging.exact import in_words
from tuilab.record.blocks import times_of
from tuilab.record.own_gpus import name_of_gpu, own_gpus
from tuilab.record.summary import Claim, RunSummary
from tuilab.record.verdicts import Verdict
from tuilab.text import brief
from tuilab.words import gpu_words, size

ABSENT = "n/a"
_FACTS = 400  # of an environment that are compared
_LENGTH = 300  # of a value
_CHANGED_LINES = 200  # of two sources
_RANKS: dict[str, int] = {
    Verdict.SUPPORTED: 3,
    Verdict.WEAKER: 2,
    Verdict.NO_DIFFERENCE: 1,
    Verdict.REFUTED: 0,
    Verdict.INVALID: 0,
}
# What is another number at every look says nothing about the box.
_MOMENTARY = ("load_average", "pressure_avg10", "memory_available_bytes", "memory_free_bytes", "missing", "why")
_CONDITIONS = {
    "load_average": "load in the minute before",
    "pressure_avg10": "waiting for a core, % of 10 s",
    "memory_available_bytes": "memory available",
}


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in all runs: a value for each of them."""

    part: str  # "parameter", "source", "run", "environment" or "conditions"
    name: str
    values: tuple[str, ...]


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


@dataclass(frozen=True)
class Shift:
    """How a later run's estimate differs from the first one's: their ratio, with an interval."""

    ratio: float
    low: float
    high: float
    is_within_process: bool = False  # the interval leaves out how much one process differs from another

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
    shifts: tuple[Shift | None, ...] = ()  # of each run after the first, where both have an estimate
    former_keys: tuple[str, ...] = ()  # under which other runs have it

    @property
    def gpus(self) -> list[str]:
        """The GPUs on which the runs measured it; of several none is better or worse than another one."""
        return [*dict.fromkeys(side.gpu for side in self.sides if side is not None and side.gpu)]

    @property
    def has_other_verdicts(self) -> bool:
        return len({side.verdict for side in self.sides if side is not None}) > 1

    @property
    def has_other_values(self) -> bool:
        """Whether exact values differ, or an estimate beyond what its interval allows."""
        exact = {side.measured for side in self.sides if side is not None and side.measured}
        return len(exact) > 1 or any(shift is not None and shift.is_apart for shift in self.shifts)


@dataclass(frozen=True)
class Comparison:
    """Everything there is to say about runs side by side."""

    names: tuple[str, ...]  # the scenario of each
    differences: tuple[Difference, ...]
    same: int  # facts that are the same in all
    claims: tuple[ClaimPair, ...]
    times: tuple[tuple[str, tuple[float | None, ...]], ...]  # arm: median seconds of a call in each run
    sizes: tuple[tuple[str, tuple[float | None, ...]], ...]  # measured memory and other values
    series: tuple[str, ...]  # names of curves that more than one run has


def compare(summaries: Sequence[RunSummary]) -> Comparison:
    """Return what differs between runs."""
    facts = [_facts(summary) for summary in summaries]
    names = dict.fromkeys(key for known in facts for key in known)
    rows = [Difference(*key, tuple(known.get(key, ABSENT) for known in facts)) for key in names]
    different = [row for row in rows if len(set(row.values)) > 1]
    return Comparison(
        names=tuple(summary.run.scenario if summary.run else ABSENT for summary in summaries),
        differences=(*different, *_conditions(summaries)),
        same=len(rows) - len(different),
        claims=_pairs(summaries),
        times=_table([_medians(summary) for summary in summaries]),
        sizes=_table([_sizes(summary) for summary in summaries]),
        series=_shared_series(summaries),
    )


def source_changes(first: str, other: str) -> list[str]:
    """Return the lines that differ between two sources, as `diff -u` has them, without a heading."""
    lines = list(unified_diff(first.splitlines(), other.splitlines(), lineterm="", n=1))[2:]
    kept = lines[:_CHANGED_LINES]
    return [*kept, f"… and {len(lines) - len(kept)} lines more"] if len(lines) > len(kept) else kept


def verdict_words(pair: ClaimPair) -> str:
    """Return how the runs differ on a claim, in a few words; nothing when they agree."""
    if pair.has_other_verdicts:
        return "another verdict" + (f", on another GPU: {' and '.join(pair.gpus)}" if len(pair.gpus) > 1 else "")
    shift = next((shift for shift in pair.shifts if shift is not None and shift.is_apart), None)
    if shift is not None:
        return "another estimate" + (", of one process each" if shift.is_within_process else "")
    return "another value" if pair.has_other_values else ""


def key_words(pair: ClaimPair) -> str:
    """Return that a claim has another key than it had; nothing when it has not."""
    return f"claim {' and '.join(f'[{key}]' for key in pair.former_keys)} is [{pair.key}] now" if pair.former_keys else ""


def regressions(found: Comparison) -> list[str]:
    """Return a sentence for each claim that came out worse in a later run than in the first.

    What was measured on another GPU is not worse, but about another GPU: `verdict_words` says so.
    A verdict that could not be reached (inconclusive, not testable) is not worse, only unknown. Of an estimate the interval of
    the ratio has to leave out 1, and to cover how much processes differ.
    """
    sentences = []
    for pair in found.claims:
        for at, side in enumerate(pair.sides[1:], 1):
            shift = pair.shifts[at - 1] if at <= len(pair.shifts) else None
            if why := _worse(pair.sides[0], side, shift):
                sentences.append(f"run {at + 1}: {pair.text}: {why}")
    return sentences


def _worse(first: Side | None, other: Side | None, shift: Shift | None) -> str:
    """Return how one side is worse than another, in words; nothing when it is not, or cannot be told."""
    if first is None or other is None or _are_apart(first.gpu, other.gpu):
        return ""
    ranks = [_RANKS.get(side.verdict) for side in (first, other)]
    if ranks[0] is not None and ranks[1] is not None and ranks[1] < ranks[0]:
        return f"{other.verdict}, and was {first.verdict}"
    is_lower_worse = {"at_least": True, "at_most": False}.get(other.op)
    if shift is None or not shift.is_apart or shift.is_within_process or is_lower_worse is None:
        return ""
    if (shift.ratio < 1) != is_lower_worse:
        return ""
    change = f"x{brief(shift.ratio)} [{brief(shift.low)}, {brief(shift.high)}]"
    return f"{brief(other.estimate or 0)}, and was {brief(first.estimate or 0)} ({change})"


def _are_apart(one: str, other: str) -> bool:
    """Say whether two claims were measured on two GPUs."""
    return bool(one and other and one != other)


# ---- what was asked, and where


def _facts(summary: RunSummary) -> dict[tuple[str, str], str]:
    """Return what should be the same for two runs to be alike, by part and name, in the order in which it matters."""
    run = summary.run
    if run is None:
        return {}
    found = {("run", "scenario"): f"{run.topic}/{run.scenario}" if run.topic else run.scenario}
    found |= {("parameter", name): _words(value) for name, value in run.params.items()}
    found["source", "scenario.py"] = run.source_sha256[:12] or ABSENT
    found["run", "repeats"] = f"up to {run.repeats}" if run.looks else str(summary.planned_repeats)
    found["run", "quick"] = "yes" if run.quick else "no"
    found["run", "tuilab"] = run.tuilab
    found["environment", "host"] = run.supervisor.host
    found["environment", "GPUs"] = _gpus(summary)
    if own := own_gpus(summary):
        found["environment", "GPU of the run"] = ", ".join(
            gpu_words(name_of_gpu(one.torchs, summary), one.torchs or one.nvmls) for one in own
        )
    for part, facts in summary.environment.items():
        found |= {("environment", _spoken(name)): value for name, value in _flat(part, facts).items()}
    return dict(list(found.items())[:_FACTS])


def _gpus(summary: RunSummary) -> str:
    if summary.gpus:
        models = Counter(gpu.name for gpu in summary.gpus.values())
        return ", ".join(f"{count}x {name}" if count > 1 else name for name, count in sorted(models.items()))
    return f"{ABSENT}: {summary.unavailable['gpu']}" if "gpu" in summary.unavailable else ABSENT


def _flat(name: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return nested facts by their path; a fact that is missing says why."""
    found: dict[str, str] = {}
    for key, value in facts.items():
        if isinstance(value, dict) and key != "missing":
            found |= _flat(f"{name} {key}", value)
        elif key not in _MOMENTARY:
            found[f"{name} {key}"] = _words(value)
    missing = facts.get("missing")
    if isinstance(missing, dict):
        found |= {f"{name} {key}": f"{ABSENT}: {_words(why)}" for key, why in missing.items()}
    return found


def _spoken(path: str) -> str:
    """Return the path of a fact as it is told: what is known of a box needs no telling of its place in the record."""
    for prefix in ("box env ", "box cpu ", "box "):
        path = path.removeprefix(prefix)
    return path.replace("_", " ")


def _conditions(summaries: Sequence[RunSummary]) -> list[Difference]:
    """Return how busy the box was as each run began: never the same, and worth a look when times differ."""
    rows = []
    for key, name in _CONDITIONS.items():
        values = []
        for summary in summaries:
            box = summary.environment.get("box", {}).get("cpu", {})
            value = box.get(key) if isinstance(box, dict) else None
            value = value[0] if isinstance(value, list) and value else value
            values.append(_condition(key, value))
        if len(set(values)) > 1:
            rows.append(Difference("conditions", name, tuple(values)))
    return rows


def _condition(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ABSENT
    return size(value) if key.endswith("_bytes") else f"{value:.3g}"


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_words(one) for one in value[:50])[:_LENGTH]
    return (spell(value) if isinstance(value, bool | int | float | str) else str(value))[:_LENGTH]


# ---- what came out


def _pairs(summaries: Sequence[RunSummary]) -> tuple[ClaimPair, ...]:
    """Pair claims by their keys; by their texts those that have no key, or another one in a run that does not know this one."""
    latest = {claim.text: (claim.key, s.claims) for s in summaries for claim in s.claims.values() if claim.key}
    known = [{_name(claim, s, latest): claim for claim in s.claims.values()} for s in summaries]
    return tuple(
        _pair([claims.get(name) for claims in known]) for name in dict.fromkeys(name for claims in known for name in claims)
    )


def _name(claim: Claim, summary: RunSummary, latest: Mapping[str, tuple[str, Mapping[str, Claim]]]) -> str:
    """Return what a claim is known by among all runs: its key, or the one that the last run with its words has for it.

    Where several claims of a run have the same words, nobody can tell which one has another key.
    """
    key, others = latest.get(claim.text, ("", {}))
    has_several = any([one.text for one in known.values()].count(claim.text) > 1 for known in (summary.claims, others))
    return claim.claim_id if not key or has_several or key in summary.claims or claim.key in others else key


def _pair(claims: Sequence[Claim | None]) -> ClaimPair:
    sides = tuple(None if claim is None else _side(claim) for claim in claims)
    known = [claim for claim in claims if claim is not None]
    first, *others = claims
    shifts = tuple(_shift(first, other) for other in others)
    keys = [*dict.fromkeys(claim.key for claim in known if claim.key)]
    return ClaimPair(known[-1].text, keys[-1] if keys else "", sides, shifts, tuple(keys[:-1]))


def _side(claim: Claim) -> Side:
    reached = claim.verdict
    every = [*claim.measured, *([claim.missed] if claim.missed else [])]
    measured = "; ".join(dict.fromkeys(in_words(one.got.value, _LENGTH) for one in every))[:_LENGTH]
    if reached is None:
        return Side(measured=measured, why=claim.needs)
    op = claim.declared.op if claim.declared else ""
    return Side(reached.verdict, reached.estimate, reached.low, reached.high, measured, reached.why, op, claim.gpu)


def _shift(first: Claim | None, other: Claim | None) -> Shift | None:
    """Return the ratio of two estimates; None where one of them has none.

    Estimates are ratios with intervals that are even on a logarithmic scale, and the runs are independent: the squares of
    half the widths add up, each brought to the higher of the two confidences first.
    """
    one, two = (claim.verdict if claim else None for claim in (first, other))
    if one is None or two is None or _are_apart(one.gpu, two.gpu):
        return None
    halves = [_half_width(one.estimate, one.low, one.high), _half_width(two.estimate, two.low, two.high)]
    if one.estimate is None or two.estimate is None or halves[0] is None or halves[1] is None:
        return None
    confidences = [min(max(reached.confidence or 0.95, 0.5), 0.9999999) for reached in (one, two)]
    scales = [NormalDist().inv_cdf((1 + confidence) / 2) for confidence in confidences]
    half = max(scales) * math.hypot(halves[0] / scales[0], halves[1] / scales[1])
    middle = math.log(two.estimate / one.estimate)
    ratio, low, high = (math.exp(min(max(at, -700.0), 700.0)) for at in (middle, middle - half, middle + half))
    return Shift(ratio, low, high, is_within_process="rounds" in (one.unit, two.unit))


def _half_width(estimate: float | None, low: float | None, high: float | None) -> float | None:
    if estimate is None or low is None or high is None or not 0 < low <= estimate <= high < math.inf:
        return None
    return max(math.log(high / estimate), math.log(estimate / low))


def _medians(summary: RunSummary) -> dict[str, float]:
    """Return the median time of a call of each arm."""
    return {arm: median(found) for arm, found in times_of(summary).items()}


def _sizes(summary: RunSummary) -> dict[str, float]:
    return {f"{m.name} {m.arm}".strip() + f" {name}": value for m in summary.memory for name, value in m.values.items()}


def _table(columns: Sequence[Mapping[str, float]]) -> tuple[tuple[str, tuple[float | None, ...]], ...]:
    names = dict.fromkeys(name for column in columns for name in column)
    return tuple((name, tuple(column.get(name) for column in columns)) for name in names)


def _shared_series(summaries: Sequence[RunSummary]) -> tuple[str, ...]:
    """Return the names of series, those first that most runs have."""
    counts: dict[str, int] = {}
    for summary in summaries:
        for name in dict.fromkeys(name for name, _, _ in summary.series):
            counts[name] = counts.get(name, 0) + 1
    return tuple(sorted(counts, key=lambda name: -counts[name]))
