"""Whether the arms of a command learn the same: what each went backward from in its first steps, held against each other.

What rounding may do to that depends on the dtype that an arm computes in; what chance does, as where nobody has set a seed, the
first arm shows against itself. Later steps drift apart by rounding alone, and tell nothing.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.text import percent

FIRST = 10  # values
_TOLERANCES = {"float64": 1e-6, "float32": 1e-4, "float16": 5e-3, "bfloat16": 1e-2}  # of a value, by what arms compute in
_SURE = 4.0  # standard errors: ten values are looked at, of each arm
_MOST_CHANCE = 0.1  # of a value: what differs by so much by chance tells nothing of what was learned
_FINE = 1e-3  # of a value: what learns otherwise differs by more within ten steps, but for the smallest of changes
_NO_WORD = ("", "")

Values = Sequence[Sequence[float]]  # by repeat


def difference(claim: events.ClaimDeclared, summary: RunSummary) -> tuple[str, str]:
    """Return how the arms of a claim differ in what they learn, or why that cannot be told; nothing where they need not."""
    writers = {writer for writer, race in summary.races if race.guard and {claim.over, claim.under} <= set(race.arms)}
    if not writers:
        return _NO_WORD
    base = next(race.base for writer, race in summary.races if writer in writers)
    races = [race for writer, race in summary.differences if writer in writers]
    dtypes = {race.dtypes.get(arm, "float32") for race in races for arm in (claim.over, claim.under)}
    coarsest = max(sorted(dtypes), key=_tolerance, default="float32")
    chance = _chance([race.learned for race in races], base)
    if chance is None:
        return "", "whether the arms learn the same was not seen: nothing that was one number went backward"
    if chance > _MOST_CHANCE:
        return "", f"whether the arms learn the same cannot be judged: {base} against itself differs by {_percent(chance)}"
    allowed = _tolerance(coarsest) + chance
    return _against(
        claim, [race.learned for race in races], allowed, "" if allowed <= _FINE else _how_closely(coarsest, chance)
    )


def _tolerance(dtype: str) -> float:
    return _TOLERANCES.get(dtype, _TOLERANCES["float32"])


def _how_closely(dtype: str, chance: float) -> str:
    """Return how much the arms may differ in what they learn before that is seen."""
    allowed, why = _tolerance(dtype) + chance, f"as {dtype} rounds" if chance <= _FINE else "as chance has it"
    return f"the arms are held to learn the same within {_percent(allowed)}, {why}"


def _chance(learned: Sequence[Mapping[str, Sequence[float]]], base: str) -> float | None:
    """Return by how much the means of two arms that do the same differ, by chance, at most; None where none was seen."""
    pairs = [(one[base], one[again]) for one in learned if one.get(base) and one.get(again := f"{base} {events.AGAIN}")]
    if not pairs:
        return None
    apart = [_apart(value, other) for first, second in pairs for value, other in zip(first, second, strict=False)]
    return _SURE * math.sqrt(fmean(value**2 for value in apart) / len(pairs))


def _against(
    claim: events.ClaimDeclared, learned: Sequence[Mapping[str, Sequence[float]]], allowed: float, how_closely: str
) -> tuple[str, str]:
    """Hold the means of two arms against each other, place by place."""
    over, under = ([one[arm] for one in learned if one.get(arm)] for arm in (claim.over, claim.under))
    if not over or not under:
        return "", "whether the arms learn the same was not seen: nothing that was one number went backward"
    for place, (first, second) in enumerate(zip(_means(over), _means(under), strict=False)):
        if not (apart := _apart(first, second)) <= allowed:
            told = f"{claim.under} learns something else than {claim.over}"
            seen = f"what it goes backward from differs by {_percent(apart)} at step {place}"
            return f"{told}: {seen}; if that is intended, add --different-learning", ""
    return "", how_closely


def _means(values: Values) -> list[float]:
    return [fmean(one[place] for one in values) for place in range(min(map(len, values)))]


def _apart(one: float, other: float) -> float:
    """Return how far two values are apart, as a share of them; NaN and NaN are the same."""
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    apart = abs(one - other) / max(abs(one), abs(other))
    return apart if math.isfinite(apart) else math.inf


def _percent(share: float) -> str:
    return percent(share) if math.isfinite(share) else "more than any number"
