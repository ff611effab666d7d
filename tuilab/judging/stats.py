"""Statistics as pure functions of lists of numbers: intervals, p values, looks, and what a number of units can show.

numpy and scipy are slow to load, and only a verdict about times needs them: they are imported where they are used.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuilab.arrays import NDArray, np

    Numbers = NDArray[np.float64]

POWER = 0.8  # the chance of detection that planning asks for
_NODES = 20  # of the quadrature behind the looks, and multiples of it
_MOST_UNITS = 1000  # more than anyone would wait for


# ---- the mean of a few units


def t_interval(
    values: Sequence[float],
    confidence: float,
    shared_sd: float = 0.0,
    least_sd: float = 0.0,
    freedom: int | None = None,
) -> tuple[float, float, float]:
    """Return the mean and the ends of its two-sided Student interval.

    The ends are infinite for fewer than two values. `freedom` is one less than the number of
    values, unless it is known to be fewer.
    """
    center = fmean(values)
    if len(values) < 2:
        return center, -math.inf, math.inf
    if freedom is None:
        freedom = len(values) - 1
    error = standard_error(values, shared_sd, least_sd)
    half = t_quantile((1 + confidence) / 2, freedom) * error
    return center, center - half, center + half


def skew_reach(values: Sequence[float], confidence: float) -> float:
    """Return by how much a Student interval has to reach further, because the values are skewed.

    A positive number belongs to the upper end, a negative one to the lower end. A few values of a
    skewed distribution seldom contain one of its long tail. Their mean is then too small, and so
    is their spread. The correction is that of Johnson (1978), with the skewness of the values.
    """
    count = len(values)
    center = fmean(values)
    cubes = math.fsum((value - center) ** 3 for value in values)
    third = cubes * count / (count - 1) / (count - 2)  # the third moment, without bias
    variance = spread(values) ** 2
    if not variance:
        return 0.0
    quantile = t_quantile((1 + confidence) / 2, count - 1)
    return third / variance * (1 / 6 + quantile**2 / 3) / count


def standard_error(values: Sequence[float], shared_sd: float = 0.0, least_sd: float = 0.0) -> float:
    """Return how far off the mean of two or more values is by chance.

    `shared_sd` is the standard deviation of what all of them share, which none of them shows.
    `least_sd` is that of a single value at the least, of which a coarse clock shows less.
    """
    return math.hypot(max(spread(values), least_sd) / math.sqrt(len(values)), shared_sd)


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample of two or more."""
    center = fmean(values)
    return math.sqrt(math.fsum((value - center) ** 2 for value in values) / (len(values) - 1))


@lru_cache(4096)
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution."""
    from tuilab.arrays import special

    return float(special().stdtrit(freedom, probability))


def t_cdf(value: float, freedom: int) -> float:
    """Return the chance that Student's t is at most `value`."""
    from tuilab.arrays import special

    return float(special().stdtr(freedom, value))


def p_value(distance: float, error: float, freedom: int) -> float:
    """Return the two-sided p value of a distance with this standard error; what does not vary at all is sure."""
    if distance <= 0:
        return 1.0
    return 2 * t_cdf(-distance / error, freedom) if error else 0.0


def hodges_lehmann(values: Sequence[float]) -> float:
    """Return the median of the Walsh averages (of every pair, and of each with itself): a centre that outliers move little."""
    return median((a + b) / 2 for i, a in enumerate(values) for b in values[i:])


# ---- a change over time


def slope(values: Sequence[float]) -> float:
    """Return by how much two values or more change from one to the next, by least squares."""
    middle = (len(values) - 1) / 2
    return sum((place - middle) * value for place, value in enumerate(values)) / _square(len(values))


def slope_error(values: Sequence[float], found: float) -> float:
    """Return the standard error of the slope of three values or more."""
    center, middle = fmean(values), (len(values) - 1) / 2
    rest = math.fsum((value - center - found * (place - middle)) ** 2 for place, value in enumerate(values))
    return math.sqrt(rest / (len(values) - 2) / _square(len(values)))


def _square(count: int) -> float:
    """Return the sum of the squares of so many places in a row, from their middle."""
    return count * (count**2 - 1) / 12


# ---- many looks


def spent(share: float, rate: float) -> float:
    """Return the share of its error that a plan has spent when so much of it is measured (Hwang, Shih and DeCani).

    The lower the rate, the more is kept for the end: at -4 nearly as with O'Brien and Fleming, at 1 nearly as with Pocock.
    """
    return math.expm1(-rate * share) / math.expm1(-rate)


@lru_cache(1024)
def nominal_level(counts: tuple[int, ...], errors: tuple[float, ...]) -> float:
    """Return the two-sided level of the last of several looks, at so many units each.

    `errors` is the chance, under no effect, that a decision was reached by each look: it grows. The sum of the units is a walk
    of normal steps that ends when it is beyond ±edge at a look; the weights of where it may be are carried from look to look
    (Armitage, McPherson and Rowe).
    """
    from tuilab.arrays import np, special

    places, weights = np.zeros(1), np.ones(1)
    before, gone, edge = 0, 0.0, 0.0
    for look, (count, error) in enumerate(zip(counts, errors, strict=True), 1):
        step = math.sqrt(count - before)
        edge = _edge(places, weights, step, error - gone)
        if look < len(counts):
            nodes, widths = _nodes(edge, math.sqrt(counts[look] - count))
            density = np.exp(-(((nodes[:, None] - places) / step) ** 2) / 2) / (step * math.sqrt(2 * math.pi))
            places, weights = nodes, widths * (density @ weights)
        before, gone = count, error
    return 2 * float(special().ndtr(-edge / math.sqrt(counts[-1])))


def _edge(places: "Numbers", weights: "Numbers", step: float, error: float) -> float:
    """Return the edge that a walk from these places is beyond after a normal step with the chance `error`."""
    from tuilab.arrays import special

    ndtr = special().ndtr
    low, high = 0.0, float(places[-1]) + 40 * step
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * float(weights @ ndtr((places - middle) / step)) > error else (low, middle)
    return (low + high) / 2


def _nodes(edge: float, step: float) -> "tuple[Numbers, Numbers]":
    """Return the nodes and weights of a quadrature within ±edge that is fine enough for a normal step."""
    nodes, weights = _legendre(_NODES * math.ceil(3 * edge / step / _NODES))
    return edge * nodes, edge * weights


@lru_cache
def _legendre(count: int) -> "tuple[Numbers, Numbers]":
    from tuilab.arrays import special

    nodes, weights = special().roots_legendre(count)
    return nodes, weights


# ---- what a number of units can show


def smallest_effect(count: int, error: float, confidence: float) -> float:
    """Return the mean that so many units would tell from zero with the chance POWER; `error` is its standard error.

    The noncentral t is taken for a normal with the same two moments: within 2 % of the exact answer for five units and more.
    """
    critical = t_quantile((1 + confidence) / 2, count - 1)
    share = math.sqrt(2 / (count - 1)) * math.exp(math.lgamma(count / 2) - math.lgamma((count - 1) / 2))  # E[s] / sigma
    errors = share * critical + NormalDist().inv_cdf(POWER) * math.sqrt(1 + (1 - share**2) * critical**2)
    return errors * error


def units_needed(distance: float, deviation: float, confidence: float) -> int | None:
    """Return how many units of this spread tell a mean at `distance` from zero with the chance POWER; None for too many."""

    def is_enough(count: int) -> bool:
        return smallest_effect(count, deviation / math.sqrt(count), confidence) <= distance

    few, many = 1, _MOST_UNITS
    if distance <= 0 or not is_enough(many):
        return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if is_enough(middle) else (middle, many)
    return many
