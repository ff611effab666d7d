"""Steps, sweeps and limits: what is yielded, what is told meanwhile, and what is refused."""

from fractions import Fraction
from typing import Any

import pytest

from tuilab.lab.lesson_helpers import find_limit, swept


def told_of(values: Any) -> tuple[list[Any], list[tuple[int, int, str]]]:
    told: list[tuple[int, int, str]] = []
    return list(swept(values, "sizes", lambda *how_far: told.append(how_far))), told


@pytest.mark.parametrize("values", [[3, 1, 2], (3, 1, 2), iter([3, 1, 2]), {3: "", 1: "", 2: ""}])
def test_each_value_is_handed_out_in_its_order_and_told_when_it_is_done(values: Any) -> None:
    assert told_of(values) == ([3, 1, 2], [(1, 3, "sizes"), (2, 3, "sizes"), (3, 3, "sizes")])


def test_no_values_are_no_steps() -> None:
    assert told_of([]) == ([], [])


def test_of_a_sweep_that_is_left_only_what_was_done_is_told() -> None:
    told: list[tuple[int, int, str]] = []
    for value in swept(range(5), "steps", lambda *how_far: told.append(how_far)):
        if value == 2:
            break

    assert told == [(1, 5, "steps"), (2, 5, "steps")]


@pytest.mark.parametrize("values", [3, None, "abc", b"abc"])
def test_what_is_no_row_of_values_is_refused_before_the_first(values: Any) -> None:
    with pytest.raises(TypeError, match="values takes a list of values"):
        swept(values, "sizes", print)


@pytest.mark.parametrize(
    ("low", "high", "limit"), [(0, 1000, 104), (104, 105, 104), (-(10**20), 10**20, 104)]
)
def test_the_limit_of_whole_numbers_is_the_last_that_works(low: int, high: int, limit: int) -> None:
    found = find_limit(lambda n: n <= 104, low, high)

    assert (found, type(found)) == (limit, int)


def test_the_limit_of_numbers_is_right_to_a_millionth_of_a_millionth_of_the_range() -> None:
    found = find_limit(lambda x: x <= 88.7228390, 0, 1000.0)

    assert 88.7228390 - 1e-9 <= found <= 88.7228390


def test_halving_asks_seldom() -> None:
    asked: list[int] = []

    def works(number: int) -> bool:
        asked.append(number)
        return number < 700_000

    find_limit(works, 0, 1_000_000)

    assert len(asked) <= 2 + 20


@pytest.mark.parametrize(
    ("low", "high", "why"),
    [
        (200, 1000, "low takes a value that works, but 200 does not; choose another low"),
        (0, 50, "high takes a value that does not work, but 50 does; choose a larger high"),
        (5, 5, "low takes a value below high, not 5 with high=5"),
        (float("nan"), 5, "low takes a number from -1e+300 to 1e+300, not nan"),
    ],
)
def test_bounds_between_which_there_is_no_limit_are_refused(
    low: float, high: float, why: str
) -> None:
    with pytest.raises(ValueError) as refused:
        find_limit(lambda x: x <= Fraction(104), low, high)

    assert str(refused.value) == why
