"""The statistics, held against published tables, textbook examples and scipy.stats."""

import math
import random

import numpy as np
import pytest
import scipy  # its `stats` are loaded when they are asked for

from tuilab.judging import stats

# Hollander and Wolfe, Nonparametric Statistical Methods, table 3.1: the change of a depression score in nine patients
DEPRESSION = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010]


def sample(count: int, center: float = 0.0, seed: int = 0) -> list[float]:
    generator = random.Random(seed)
    return [generator.gauss(center, 1.0) for _ in range(count)]


@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [
        (0.95, 1, 6.314),
        (0.975, 5, 2.571),
        (0.975, 9, 2.262),
        (0.99, 10, 2.764),
        (0.995, 30, 2.750),
        (0.9995, 7, 5.408),
    ],
)
def test_the_quantiles_are_those_of_students_table(
    probability: float, freedom: int, expected: float
) -> None:
    assert stats.t_quantile(probability, freedom) == pytest.approx(expected, abs=6e-4)
    assert stats.t_cdf(expected, freedom) == pytest.approx(probability, abs=1e-4)


def test_the_quantile_is_good_far_out_where_the_first_looks_are() -> None:
    assert stats.t_quantile(1 - 2.5e-6, 7) == pytest.approx(
        scipy.stats.t.ppf(1 - 2.5e-6, 7), rel=1e-6
    )


@pytest.mark.parametrize("count", [2, 6, 40])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_the_interval_is_that_of_scipy(count: int, confidence: float) -> None:
    values = sample(count, 0.3)
    low, high = scipy.stats.ttest_1samp(values, 0.0).confidence_interval(confidence)

    assert stats.t_interval(values, confidence) == pytest.approx(
        (sum(values) / count, low, high), rel=1e-9
    )


def test_one_value_has_an_interval_without_ends() -> None:
    assert stats.t_interval([4.5], 0.95) == (4.5, -math.inf, math.inf)


def test_ten_digits_have_the_interval_of_the_textbook() -> None:
    """2.262 standard errors of 0.957 on either side of 4.5."""
    center, low, high = stats.t_interval([float(x) for x in range(10)], 0.95)

    assert (center, round(low, 4), round(high, 4)) == (4.5, 2.3341, 6.6659)


def test_the_luck_that_all_values_share_widens_the_interval_and_no_number_of_them_narrows_it() -> (
    None
):
    few, many = ([0.1 * sign for sign in (-1, 1)] * count for count in (3, 300))

    error = math.hypot(0.10954 / math.sqrt(6), 0.2)
    assert stats.t_interval(few, 0.95, shared_sd=0.2)[2] == pytest.approx(2.5706 * error, rel=1e-4)
    assert stats.t_interval(many, 0.95, shared_sd=0.2)[2] == pytest.approx(1.964 * 0.2, rel=1e-2)


def test_values_vary_by_their_least_spread_at_least() -> None:
    assert stats.standard_error([0.5] * 4, least_sd=0.1) == 0.05
    assert stats.standard_error([0.0, 1.0] * 2, least_sd=0.1) == pytest.approx(
        0.57735 / 2, rel=1e-4
    )


@pytest.mark.parametrize("expected", [0.0, 0.5, -3.0])
def test_the_p_value_is_that_of_scipy(expected: float) -> None:
    values = sample(12, 0.3)
    distance, error = abs(sum(values) / 12 - expected), stats.standard_error(values)

    assert stats.p_value(distance, error, 11) == pytest.approx(
        scipy.stats.ttest_1samp(values, expected).pvalue, rel=1e-9
    )


def test_what_does_not_vary_is_sure_and_what_is_not_beyond_proves_nothing() -> None:
    assert stats.p_value(0.1, 0.0, 5) == 0.0
    assert (stats.p_value(0.0, 0.0, 5), stats.p_value(-0.1, 0.2, 5)) == (1.0, 1.0)


def test_the_slope_is_that_of_scipy() -> None:
    values = [0.1 * i + noise for i, noise in enumerate(sample(12))]
    found = scipy.stats.linregress(range(12), values)

    slope = stats.slope(values)
    assert (slope, stats.slope_error(values, slope)) == pytest.approx(
        (found.slope, found.stderr), rel=1e-9
    )


def test_the_hodges_lehmann_estimate_is_that_of_the_textbook() -> None:
    """Hollander and Wolfe give -0.46 for the change of the depression score."""
    assert stats.hodges_lehmann(DEPRESSION) == pytest.approx(-0.46, abs=1e-9)


def test_the_hodges_lehmann_estimate_is_the_median_of_the_walsh_averages() -> None:
    """Of 1, 2, 9: the averages 1, 1.5, 2, 5, 5.5, 9."""
    assert stats.hodges_lehmann([9.0, 1.0, 2.0]) == 3.5


def test_an_outlier_moves_the_mean_and_not_the_hodges_lehmann_estimate() -> None:
    values = [1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 50.0]

    assert stats.t_interval(values, 0.95)[0] == pytest.approx(8.0)
    assert stats.hodges_lehmann(values) == pytest.approx(1.025, abs=0.03)


@pytest.mark.first(1)
# Jennison and Turnbull, Group Sequential Methods with Applications to Clinical Trials, tables 2.1 and 2.3, two-sided at 5 %
@pytest.mark.parametrize(
    ("looks", "pocock", "obrien_fleming"), [(2, 2.178, 1.977), (5, 2.413, 2.040), (8, 2.512, 2.072)]
)
def test_bounds_that_are_published_spend_what_their_plans_may(
    looks: int, pocock: float, obrien_fleming: float
) -> None:
    """Held against the tables the other way round: the level of the last look, when those before it have spent what they do."""
    counts = tuple(range(1, looks + 1))
    for bounds in ([pocock] * looks, [obrien_fleming * math.sqrt(looks / look) for look in counts]):
        errors: tuple[float, ...] = ()
        for look, bound in zip(counts, bounds, strict=True):
            errors = (
                *errors,
                _error_of(counts[:look], errors, 2 * float(scipy.special.ndtr(-bound))),
            )

        assert errors[-1] == pytest.approx(0.05, abs=2e-4)


def _error_of(counts: tuple[int, ...], before: tuple[float, ...], level: float) -> float:
    """Return the error that is spent by the last look when its level is so much."""
    low, high = before[-1] if before else 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if stats.nominal_level(counts, (*before, middle)) < level
            else (low, middle)
        )
    return low


def test_a_single_look_has_all_the_error() -> None:
    assert stats.nominal_level((6,), (0.05,)) == pytest.approx(0.05, rel=1e-9)


def test_the_spending_is_that_of_hwang_shih_and_decani() -> None:
    assert [round(stats.spent_error(share, -4.0), 4) for share in (0.25, 0.5, 0.75, 1.0)] == [
        0.0321,
        0.1192,
        0.3561,
        1.0,
    ]
    assert [round(stats.spent_error(share, -2.0), 4) for share in (0.25, 0.5, 0.75, 1.0)] == [
        0.1015,
        0.2689,
        0.5449,
        1.0,
    ]


@pytest.mark.parametrize(
    ("counts", "rate"), [((6, 8, 12, 16, 24, 40), -2.0), (tuple(range(6, 41)), -4.0)]
)
def test_a_walk_under_no_effect_leaves_the_looks_as_often_as_they_may_spend(
    counts: tuple[int, ...], rate: float
) -> None:
    errors = tuple(0.05 * stats.spent_error(count / counts[-1], rate) for count in counts)
    levels = [
        stats.nominal_level(counts[:look], errors[:look]) for look in range(1, len(counts) + 1)
    ]
    bounds = [-float(scipy.special.ndtri(level / 2)) for level in levels]
    walks = np.random.default_rng(1).standard_normal((40_000, counts[-1])).cumsum(axis=1)

    beyond = np.abs(walks[:, [count - 1 for count in counts]]) > np.array(bounds) * np.sqrt(counts)
    gone = beyond.cumsum(axis=1) > 0

    for look, error in enumerate(errors):
        assert gone[:, look].mean() == pytest.approx(error, abs=3 * math.sqrt(error / 40_000))


@pytest.mark.parametrize(("effect", "published"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)])
def test_the_units_needed_are_those_of_the_power_tables(effect: float, published: int) -> None:
    """Student's test of one sample, two-sided at 5 %, 80 % power."""
    assert stats.units_needed(effect, 1.0, 0.95) == published


@pytest.mark.parametrize(
    ("count", "confidence"), [(5, 0.95), (6, 0.95), (6, 0.99), (8, 0.999), (40, 0.95)]
)
def test_the_smallest_effect_is_seen_four_times_in_five(count: int, confidence: float) -> None:
    critical = stats.t_quantile((1 + confidence) / 2, count - 1)
    noncentral = stats.smallest_effect(count, 1.0, confidence)

    assert scipy.stats.nct.sf(critical, count - 1, noncentral) == pytest.approx(0.8, abs=0.01)


def test_what_lies_on_the_bound_or_hardly_off_it_is_never_decided() -> None:
    assert stats.units_needed(0.0, 1.0, 0.95) is None
    assert stats.units_needed(-0.1, 1.0, 0.95) is None
    assert stats.units_needed(0.01, 1.0, 0.95) is None
