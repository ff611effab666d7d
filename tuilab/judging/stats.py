"""Statistics as pure functions of lists of numbers: intervals, p values, looks, and what a number of units can show.

`scipy.special` is slow to load, and only a verdict about times needs it: it is imported where it is used.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, median

POWER = 0.8  # the chance of detection that planning asks for
_NODES = 40  # of the quadrature behind the looks
_MOST_UNITS = 1000  # more than anyone would wait for


# ---- the mean of a few units


def t_interval(values: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Return the mean and the ends of its two-sided Student interval; infinite ends for fewer than two values."""
    center = fmean(values)
    if len(values) < 2:
        return center, -math.inf, math.inf
    half = t_quantile((1 + confidence) / 2, len(values) - 1) * spread(values) / math.sqrt(len(values))
    return center, center - half, center + half


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample of two or more."""
    center = fmean(values)
    return math.sqrt(math.fsum((value - center) ** 2 for value in values) / (len(values) - 1))


def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def t_cdf(value: float, freedom: int) -> float:
    """Return the chance that Student's t is at most `value`."""
    from scipy.special import stdtr

    return float(stdtr(freedom, value))


def p_value(values: Sequence[float], expected: float) -> float:
    """Return the two-sided p value of Student's test that the mean is `expected`; 1 for fewer than two values."""
    if len(values) < 2:
        return 1.0
    return 2 * t_cdf(-abs(_t(fmean(values) - expected, values)), len(values) - 1)


def tost_p(values: Sequence[float], margin: float) -> float:
    """Return the p value of two one-sided tests that the mean lies within ±margin of zero; 1 for fewer than two values."""
    if len(values) < 2:
        return 1.0
    return t_cdf(-_t(margin - abs(fmean(values)), values), len(values) - 1)


def _t(distance: float, values: Sequence[float]) -> float:
    """Return a distance in standard errors; values that do not vary at all are sure."""
    error = spread(values) / math.sqrt(len(values))
    return distance / error if error else math.copysign(math.inf, distance) if distance else 0.0


def hodges_lehmann(values: Sequence[float]) -> float:
    """Return the median of the Walsh averages (of every pair, and of each with itself): a centre that outliers move little."""
    return median((a + b) / 2 for i, a in enumerate(values) for b in values[i:])


# ---- many looks


def look_confidence(look: int, looks: int, confidence: float = 0.95) -> float:
    """Return the confidence of the interval at one of several equally spaced looks, so that all together have `confidence`."""
    if looks == 1:
        return confidence
    return math.erf(obrien_fleming(looks, 1 - confidence) * math.sqrt(looks / look) / math.sqrt(2))


@lru_cache
def obrien_fleming(looks: int, alpha: float = 0.05) -> float:
    """Return the constant c of O'Brien and Fleming: look k of K decides when |z| is at least c * sqrt(K / k).

    Under no effect the sum of the units is then a random walk of K steps, ended by leaving ±c * sqrt(K): c is such that it
    leaves with the chance `alpha`.
    """
    low, high = 0.0, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - _stays_inside(middle * math.sqrt(looks), looks) > alpha else (low, middle)
    return (low + high) / 2


def _stays_inside(edge: float, steps: int) -> float:
    """Return the chance that a walk of standard normal steps stays within ±edge (Armitage, McPherson and Rowe)."""
    from scipy.special import roots_legendre

    nodes, weights = ([edge * float(x) for x in part] for part in roots_legendre(_NODES))
    density = [_normal(x) for x in nodes]
    kernel = [[weight * _normal(x - y) for y, weight in zip(nodes, weights, strict=True)] for x in nodes]
    for _ in range(steps - 1):
        density = [math.fsum(a * b for a, b in zip(row, density, strict=True)) for row in kernel]
    return math.fsum(a * b for a, b in zip(weights, density, strict=True))


def _normal(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


# ---- what a number of units can show


def smallest_effect(count: int, deviation: float, confidence: float) -> float:
    """Return the mean that so many units of this spread would tell from zero with the chance POWER.

    The noncentral t is taken for a normal with the same two moments: within 2 % of the exact answer for five units and more.
    """
    critical = t_quantile((1 + confidence) / 2, count - 1)
    share = math.sqrt(2 / (count - 1)) * math.exp(math.lgamma(count / 2) - math.lgamma((count - 1) / 2))  # E[s] / sigma
    errors = share * critical + NormalDist().inv_cdf(POWER) * math.sqrt(1 + (1 - share**2) * critical**2)
    return errors * deviation / math.sqrt(count)


def units_needed(distance: float, deviation: float, confidence: float) -> int | None:
    """Return how many units of this spread tell a mean at `distance` from zero with the chance POWER; None for too many."""
    few, many = 1, _MOST_UNITS
    if distance <= 0 or smallest_effect(many, deviation, confidence) > distance:
        return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if smallest_effect(middle, deviation, confidence) <= distance else (middle, many)
    return many
