"""The statistics, held against published tables, textbook examples and scipy.stats."""

import math
import random

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
    [(0.95, 1, 6.314), (0.975, 5, 2.571), (0.975, 9, 2.262), (0.99, 10, 2.764), (0.995, 30, 2.750), (0.9995, 7, 5.408)],
)
def test_the_quantiles_are_those_of_students_table(probability: float, freedom: int, expected: float) -> None:
    assert stats.t_quantile(probability, freedom) == pytest.approx(expected, abs=6e-4)
    assert stats.t_cdf(expected, freedom) == pytest.approx(probability, abs=1e-4)


def test_the_quantile_is_good_far_out_where_the_first_looks_are() -> None:
    assert stats.t_quantile(1 - 2.5e-6, 7) == pytest.approx(scipy.stats.t.ppf(1 - 2.5e-6, 7), rel=1e-6)


@pytest.mark.parametrize("count", [2, 6, 40])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_the_interval_is_that_of_scipy(count: int, confidence: float) -> None:
    values = sample(count, 0.3)
    low, high = scipy.stats.ttest_1samp(values, 0.0).confidence_interval(confidence)

    assert stats.t_interval(values, confidence) == pytest.approx((sum(values) / count, low, high), rel=1e-9)


def test_one_value_has_an_interval_without_ends() -> None:
    assert stats.t_interval([4.5], 0.95) == (4.5, -math.inf, math.inf)


def test_ten_digits_have_the_interval_of_the_textbook() -> None:
    """2.262 standard errors of 0.957 on either side of 4.5."""
    center, low, high = stats.t_interval([float(x) for x in range(10)], 0.95)

    assert (center, round(low, 4), round(high, 4)) == (4.5, 2.3341, 6.6659)


@pytest.mark.parametrize("expected", [0.0, 0.5, -3.0])
def test_the_p_value_is_that_of_scipy(expected: float) -> None:
    values = sample(12, 0.3)

    assert stats.p_value(values, expected) == pytest.approx(scipy.stats.ttest_1samp(values, expected).pvalue, rel=1e-9)


def test_the_p_value_of_two_one_sided_tests_is_the_larger_one() -> None:
    values = sample(30, 0.1)
    above = scipy.stats.ttest_1samp(values, -0.5, alternative="greater").pvalue
    below = scipy.stats.ttest_1samp(values, 0.5, alternative="less").pvalue

    assert stats.tost_p(values, 0.5) == pytest.approx(max(above, below), rel=1e-9)


def test_the_two_one_sided_tests_and_the_90_percent_interval_agree() -> None:
    values = sample(30, 0.1)
    _, low, high = stats.t_interval(values, 0.9)
    edge = max(-low, high)

    assert stats.tost_p(values, edge) == pytest.approx(0.05, abs=1e-9)


def test_values_that_do_not_vary_are_sure() -> None:
    assert stats.p_value([0.5] * 6, 0.5) == 1.0
    assert stats.p_value([0.5] * 6, 0.4) == 0.0
    assert stats.tost_p([0.5] * 6, 0.6) == 0.0
    assert stats.tost_p([0.5] * 6, 0.4) == 1.0


def test_one_value_proves_nothing() -> None:
    assert (stats.p_value([3.0], 0.0), stats.tost_p([0.0], 1.0)) == (1.0, 1.0)


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


# Jennison and Turnbull, Group Sequential Methods with Applications to Clinical Trials, table 2.3, K = 1 to 8
@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "published"),
    [
        (0.01, [2.576, 2.580, 2.595, 2.609, 2.621, 2.631, 2.640, 2.648]),
        (0.05, [1.960, 1.977, 2.004, 2.024, 2.040, 2.053, 2.063, 2.072]),
        (0.10, [1.645, 1.678, 1.710, 1.733, 1.751, 1.765, 1.776, 1.786]),
    ],
)
def test_the_constants_of_o_brien_and_fleming_are_the_published_ones(alpha: float, published: list[float]) -> None:
    assert [round(stats.obrien_fleming(looks, alpha), 3) for looks in range(1, 9)] == published


def test_the_five_looks_have_the_published_levels() -> None:
    """Two-sided nominal p values of O'Brien and Fleming for K = 5."""
    levels = [1 - stats.look_confidence(look, 5) for look in range(1, 6)]

    assert levels == pytest.approx([0.000005, 0.00126, 0.00845, 0.02256, 0.04134], rel=0.02)


def test_a_single_look_has_the_confidence_that_was_claimed() -> None:
    assert stats.look_confidence(1, 1, 0.9) == 0.9


@pytest.mark.parametrize(("effect", "published"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)])
def test_the_units_needed_are_those_of_the_power_tables(effect: float, published: int) -> None:
    """Student's test of one sample, two-sided at 5 %, 80 % power."""
    assert stats.units_needed(effect, 1.0, 0.95) == published


@pytest.mark.parametrize(("count", "confidence"), [(5, 0.95), (6, 0.95), (6, 0.99), (8, 0.999), (40, 0.95)])
def test_the_smallest_effect_is_seen_four_times_in_five(count: int, confidence: float) -> None:
    critical = stats.t_quantile((1 + confidence) / 2, count - 1)
    noncentral = stats.smallest_effect(count, 1.0, confidence) * math.sqrt(count)

    assert scipy.stats.nct.sf(critical, count - 1, noncentral) == pytest.approx(0.8, abs=0.01)


def test_what_lies_on_the_bound_or_hardly_off_it_is_never_decided() -> None:
    assert stats.units_needed(0.0, 1.0, 0.95) is None
    assert stats.units_needed(-0.1, 1.0, 0.95) is None
    assert stats.units_needed(0.01, 1.0, 0.95) is None
