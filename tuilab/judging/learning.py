"""Check whether the arms of a command learn the same.

The evidence is the value that each arm called `backward()` on, in its first steps. Two effects
allow such values to differ a little: rounding, which depends on the dtype that an arm computes in,
and chance, if no seed is set. How large chance is, the base shows: it runs twice. Later steps are
not compared, because rounding alone makes training drift apart.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.outcomes import LEARNING_DOUBT
from tuilab.text.display import percent

COMPARED_VALUES = 10  # the first values that an arm called backward() on
_ROUNDING_TOLERANCES = {  # share of a value, by the dtype that arms compute in
    "float64": 1e-6,
    "float32": 1e-4,
    "float16": 5e-3,
    "bfloat16": 1e-2,
}
_USUAL_DTYPE = "float32"
_SURE_ERRORS = 4.0  # standard errors; so many because ten values of each arm are compared
_MAX_CHANCE = 0.1  # of a value; arms that differ more by chance cannot be compared
# Of a value. Within ten steps, another training differs by more than this, unless the change is
# very small. So a tolerance up to this needs no mention.
_FINE_TOLERANCE = 1e-3

_LearnedValues = Mapping[str, Sequence[float]]  # the values of one repeat, by arm
_NOT_SEEN = (
    "whether the arms learn the same was not seen: nothing that was one number went backward"
)


def compare_learning(claim: events.ClaimDeclared, summary: RunSummary) -> tuple[str, str]:
    """Return two texts: how the arms of a claim learn differently, and how limited this check is.

    The second one says why the arms cannot be compared, or how large a difference would not be
    found. Both are empty if a race has no `guard`: its arms do not have to learn the same.
    """
    workers = set()
    for worker, race in summary.races:
        if race.guard and {claim.over, claim.under} <= set(race.arms):
            workers.add(worker)
    if not workers:
        return "", ""
    base = next(race.base for worker, race in summary.races if worker in workers)
    results = []
    learned = []
    for worker, result in summary.differences:
        if worker in workers:
            results.append(result)
            learned.append(result.learned)

    chance = _difference_by_chance(learned, base)
    if chance is None:
        return "", _NOT_SEEN
    if chance > _MAX_CHANCE:
        off = f"{base} against itself differs by {_format_share(chance)}"
        return "", f"whether the arms learn the same cannot be judged: {off}"

    dtype = _find_coarsest_dtype(claim, results)
    tolerance = chance
    if not _must_be_equal(claim, summary):
        tolerance += _rounding_tolerance(dtype)
    over = _mean_values(learned, claim.over)
    under = _mean_values(learned, claim.under)
    if not over or not under:
        return "", _NOT_SEEN
    advice = "; if that is intended, add --different-learning"
    if _kinds_of_learning(claim, summary):  # a tuning has no such option
        advice = ""
    difference = _describe_difference(claim, over, under, tolerance, advice)
    if difference or tolerance <= _FINE_TOLERANCE:
        return difference, ""
    return "", _describe_tolerance(tolerance, dtype, chance)


def describe_other_rounding(claim: events.ClaimDeclared, summary: RunSummary) -> str:
    """Return why a gain of a treatment that computes in another dtype supports no claim, or ""."""
    kinds = _kinds_of_learning(claim, summary)
    if "other rounding" not in kinds:
        return ""
    return LEARNING_DOUBT


def _must_be_equal(claim: events.ClaimDeclared, summary: RunSummary) -> bool:
    """Return whether both arms of a claim are those of a tuning that must learn bit for bit."""
    return _kinds_of_learning(claim, summary) == {"same"}


def _kinds_of_learning(claim: events.ClaimDeclared, summary: RunSummary) -> set[str]:
    """Return how the arms of a claim change what the script learns; empty if no race says it."""
    kinds: set[str] = set()
    for _, race in summary.races:
        if {claim.over, claim.under} <= set(race.arms):
            for arm in (claim.over, claim.under):
                if arm in race.learns:
                    kinds.add(race.learns[arm])
    return kinds


def _difference_by_chance(learned: Sequence[_LearnedValues], base: str) -> float | None:
    """Return by how much the means of two equal arms can differ by chance, as a share.

    It is four standard errors of the difference between both runs of the base. None if no repeat
    has values of both.
    """
    second_base = f"{base} {events.AGAIN}"
    squares = []
    pair_count = 0
    for of_repeat in learned:
        if not of_repeat.get(base) or not of_repeat.get(second_base):
            continue
        pair_count += 1
        for first, second in zip(of_repeat[base], of_repeat[second_base], strict=False):
            squares.append(_relative_difference(first, second) ** 2)
    if not pair_count:
        return None
    return _SURE_ERRORS * math.sqrt(fmean(squares) / pair_count)


def _find_coarsest_dtype(
    claim: events.ClaimDeclared, results: Iterable[events.RaceFinished]
) -> str:
    """Return the dtype of both arms that rounds most."""
    dtypes = set()
    for result in results:
        dtypes.add(result.dtypes.get(claim.over, _USUAL_DTYPE))
        dtypes.add(result.dtypes.get(claim.under, _USUAL_DTYPE))
    return max(sorted(dtypes), key=_rounding_tolerance, default=_USUAL_DTYPE)


def _rounding_tolerance(dtype: str) -> float:
    return _ROUNDING_TOLERANCES.get(dtype, _ROUNDING_TOLERANCES[_USUAL_DTYPE])


def _mean_values(learned: Sequence[_LearnedValues], arm: str) -> list[float]:
    """Return the mean over the repeats of each value of an arm; empty if none has any.

    It ends with the shortest list. A repeat without values is left out.
    """
    lists = [of_repeat[arm] for of_repeat in learned if of_repeat.get(arm)]
    return [fmean(values) for values in zip(*lists, strict=False)]


def _describe_difference(
    claim: events.ClaimDeclared,
    over: Sequence[float],
    under: Sequence[float],
    tolerance: float,
    advice: str,
) -> str:
    """Return the first step in which the means of both arms differ, or an empty string."""
    for step, (first, second) in enumerate(zip(over, under, strict=False)):
        difference = _relative_difference(first, second)
        if not difference <= tolerance:
            learns = f"{claim.under} learns something else than {claim.over}"
            differs = f"differs by {_format_share(difference)} at step {step}"
            return f"{learns}: what it goes backward from {differs}{advice}"
    return ""


def _relative_difference(first: float, second: float) -> float:
    """Return the difference of two values as a share of the larger one; 0 for NaN and NaN."""
    if first == second or (math.isnan(first) and math.isnan(second)):
        return 0.0
    difference = abs(first - second) / max(abs(first), abs(second))
    return difference if math.isfinite(difference) else math.inf


def _describe_tolerance(tolerance: float, dtype: str, chance: float) -> str:
    """Return how much the arms may differ in what they learn before that is detected."""
    cause = f"as {dtype} rounds" if chance <= _FINE_TOLERANCE else "as chance has it"
    return f"the arms are held to learn the same within {_format_share(tolerance)}, {cause}"


def _format_share(share: float) -> str:
    return percent(share) if math.isfinite(share) else "more than any number"
