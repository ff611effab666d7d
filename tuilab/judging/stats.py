"""Compute statistics of lists of numbers: intervals, p values, analysis levels, detectable effects.

All functions are pure. numpy and scipy are slow to load, and only verdicts about times need them,
so the functions import them where they use them.
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
_NODES_STEP = 20  # a quadrature has a multiple of so many nodes
_BISECTIONS = 50  # halve the range until it is about as small as a float can show
_FAR_STEPS = 40.0  # a normal step is never so many standard deviations long
_MAX_UNITS = 1000  # more than anyone would wait for


# ---- the mean of a few values


def t_interval(
    values: Sequence[float],
    confidence: float,
    shared_sd: float = 0.0,
    least_sd: float = 0.0,
    freedom: int | None = None,
) -> tuple[float, float, float]:
    """Return the mean and both ends of its two-sided Student interval.

    The ends are infinite for fewer than two values. `freedom` defaults to one less than the
    number of values. `standard_error` explains the standard deviations.
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
    third_moment = cubes * count / (count - 1) / (count - 2)  # unbiased
    variance = sample_sd(values) ** 2
    if not variance:
        return 0.0
    quantile = t_quantile((1 + confidence) / 2, count - 1)
    return third_moment / variance * (1 / 6 + quantile**2 / 3) / count


def standard_error(values: Sequence[float], shared_sd: float = 0.0, least_sd: float = 0.0) -> float:
    """Return the standard error of the mean of two or more values.

    `shared_sd` is the standard deviation of an error that all values share, so that their spread
    does not show it. `least_sd` is a lower limit for the standard deviation of a single value: a
    coarse clock makes the values look more alike than they are.
    """
    sd = max(sample_sd(values), least_sd)
    return math.hypot(sd / math.sqrt(len(values)), shared_sd)


def sample_sd(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample of two or more values."""
    center = fmean(values)
    squares = math.fsum((value - center) ** 2 for value in values)
    return math.sqrt(squares / (len(values) - 1))


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
    """Return the two-sided p value of a distance with this standard error.

    It is 0 for an error of 0: values that do not vary leave nothing to chance.
    """
    if distance <= 0:
        return 1.0
    if not error:
        return 0.0
    return 2 * t_cdf(-distance / error, freedom)


def hodges_lehmann(values: Sequence[float]) -> float:
    """Return the median of the means of all pairs, each value with itself included.

    Outliers move this estimate of the centre only a little.
    """
    pair_means = []
    for index, first in enumerate(values):
        for second in values[index:]:
            pair_means.append((first + second) / 2)
    return median(pair_means)


# ---- a change over time


def slope(values: Sequence[float]) -> float:
    """Return the least-squares slope of two values or more: the change from one to the next."""
    middle = (len(values) - 1) / 2
    products = ((index - middle) * value for index, value in enumerate(values))
    return sum(products) / _sum_of_squared_indices(len(values))


def slope_error(values: Sequence[float], fitted_slope: float) -> float:
    """Return the standard error of the least-squares slope of three values or more."""
    center = fmean(values)
    middle = (len(values) - 1) / 2
    squared_residuals = []
    for index, value in enumerate(values):
        residual = value - center - fitted_slope * (index - middle)
        squared_residuals.append(residual**2)
    variance = math.fsum(squared_residuals) / (len(values) - 2)
    return math.sqrt(variance / _sum_of_squared_indices(len(values)))


def _sum_of_squared_indices(count: int) -> float:
    """Return the sum of the squared distances of the indices from their middle."""
    return count * (count**2 - 1) / 12


# ---- several analyses of the same data


def spent_error(progress: float, rate: float) -> float:
    """Return which share of its error a plan has spent at a progress of 0 to 1.

    This is the spending function of Hwang, Shih and DeCani. The lower the rate, the more error is
    kept for the end. A rate of -4 is close to O'Brien and Fleming, a rate of 1 to Pocock.
    """
    return math.expm1(-rate * progress) / math.expm1(-rate)


@lru_cache(1024)
def nominal_level(counts: tuple[int, ...], spent_errors: tuple[float, ...]) -> float:
    """Return the two-sided significance level of the last of several analyses.

    `counts` has the number of units at each analysis. `spent_errors` has the chance, if there is no
    effect, that a decision was reached by the end of each analysis; it grows.

    The sum of the units is a random walk of normal steps. It ends if it is beyond ±edge at an
    analysis. `places` and `weights` describe where a walk that has not ended may be, as the nodes
    and weights of a quadrature (Armitage, McPherson and Rowe).
    """
    from tuilab.arrays import np, special

    places = np.zeros(1)
    weights = np.ones(1)
    count_before = 0
    spent_before = 0.0
    edge = 0.0
    for index, (count, spent) in enumerate(zip(counts, spent_errors, strict=True)):
        step_sd = math.sqrt(count - count_before)
        edge = _find_edge(places, weights, step_sd, spent - spent_before)
        is_last = index == len(counts) - 1
        if not is_last:
            next_step_sd = math.sqrt(counts[index + 1] - count)
            nodes, widths = _make_quadrature(edge, next_step_sd)
            distances = (nodes[:, None] - places) / step_sd  # shape: nodes, places
            density = np.exp(-(distances**2) / 2) / (step_sd * math.sqrt(2 * math.pi))
            weights = widths * (density @ weights)
            places = nodes
        count_before = count
        spent_before = spent
    return 2 * float(special().ndtr(-edge / math.sqrt(counts[-1])))


def _find_edge(places: "Numbers", weights: "Numbers", step_sd: float, error: float) -> float:
    """Return the edge that a walk is beyond, after one step from these places, with chance `error`.

    Bisection finds it: the chance falls as the edge rises.
    """
    from tuilab.arrays import special

    ndtr = special().ndtr
    low = 0.0
    high = float(places[-1]) + _FAR_STEPS * step_sd
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        chance = 2 * float(weights @ ndtr((places - middle) / step_sd))
        if chance > error:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _make_quadrature(edge: float, step_sd: float) -> "tuple[Numbers, Numbers]":
    """Return nodes and weights within ±edge that are fine enough for a normal step."""
    count = _NODES_STEP * math.ceil(3 * edge / step_sd / _NODES_STEP)
    nodes, weights = _legendre(count)
    return edge * nodes, edge * weights


@lru_cache
def _legendre(count: int) -> "tuple[Numbers, Numbers]":
    """Return the nodes and weights of the Gauss-Legendre quadrature with `count` nodes on ±1."""
    from tuilab.arrays import special

    nodes, weights = special().roots_legendre(count)
    return nodes, weights


# ---- the effects that a number of units can show


def smallest_effect(count: int, error: float, confidence: float) -> float:
    """Return the mean that so many units would distinguish from zero with the chance POWER.

    `error` is the standard error of the mean. A normal distribution with the same two moments
    replaces the noncentral t. For five units and more, it is within 2 % of the exact answer.
    """
    freedom = count - 1
    critical = t_quantile((1 + confidence) / 2, freedom)
    log_gammas = math.lgamma(count / 2) - math.lgamma(freedom / 2)
    sd_bias = math.sqrt(2 / freedom) * math.exp(log_gammas)  # mean of the sample sd / true sd
    deviation = math.sqrt(1 + (1 - sd_bias**2) * critical**2)
    errors = sd_bias * critical + NormalDist().inv_cdf(POWER) * deviation
    return errors * error


def units_needed(distance: float, sd: float, confidence: float) -> int | None:
    """Return how many units distinguish a mean at `distance` from zero with the chance POWER.

    `sd` is the standard deviation of a unit. None if more than 1000 units are needed.
    """

    def is_enough(count: int) -> bool:
        return smallest_effect(count, sd / math.sqrt(count), confidence) <= distance

    if distance <= 0 or not is_enough(_MAX_UNITS):
        return None
    too_few = 1
    enough = _MAX_UNITS
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if is_enough(middle):
            enough = middle
        else:
            too_few = middle
    return enough
