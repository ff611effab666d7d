"""The order in which the arms of a race take turns: random, mirrored in pairs, and the same whenever it is drawn again."""

import math
from collections import Counter
from statistics import fmean

import pytest

from tuilab.record.order import CYCLE, order, order_of_round


def test_an_order_has_everybody_once() -> None:
    assert all(
        sorted(order(seed, pair, 5)) == [0, 1, 2, 3, 4] for seed in range(20) for pair in range(20)
    )


def test_the_same_seed_draws_the_same_order_for_ever() -> None:
    """A record that was made by any version is checked by this one: these numbers stay."""
    assert [order(7, pair, 5) for pair in range(4)] == [
        [0, 2, 4, 3, 1],
        [0, 1, 4, 3, 2],
        [2, 3, 0, 4, 1],
        [2, 1, 0, 4, 3],
    ]
    assert order(1, 2, 6) == [5, 3, 1, 2, 4, 0]


def test_every_second_round_mirrors_the_one_before() -> None:
    assert [order_of_round(7, turn, 5) for turn in range(4)] == [
        order(7, 0, 5), order(7, 0, 5)[::-1], order(7, 1, 5), order(7, 1, 5)[::-1],
    ]  # fmt: skip


def test_each_order_comes_as_often_as_any_other() -> None:
    drawn = Counter(tuple(order(seed, pair, 3)) for seed in range(100) for pair in range(60))

    assert {round(count / drawn.total(), 1) for count in drawn.values()} == {0.2}
    assert len(drawn) == math.factorial(3)


def test_linear_drift_cancels_in_each_pair_of_rounds() -> None:
    """Each block takes one unit longer than the one before."""
    for seed in range(20):
        times: dict[int, list[int]] = {}
        for turn in range(2):
            for place, number in enumerate(order_of_round(seed, turn, 4)):
                times.setdefault(number, []).append(4 * turn + place)
        assert {sum(found) for found in times.values()} == {7}


@pytest.mark.parametrize("period", [4, 8])
def test_what_comes_with_a_locked_period_falls_on_no_arm_more_often(period: int) -> None:
    """Every n-th block is disturbed, the same ones in every process: with an order that rotates it is always the same arm."""
    places = [
        (turn, place)
        for turn in range(16)
        for place in range(4)
        if (4 * turn + place) % period == 0
    ]
    hits = [
        order_of_round(seed, turn, 4)[place] == 0 for seed in range(300) for turn, place in places
    ]

    assert fmean(hits) == pytest.approx(1 / 4, abs=0.03)


@pytest.mark.parametrize("count", [2, 4, 7])
def test_each_slot_follows_each_slot_equally_often_itself_included(count: int) -> None:
    """The block that is not timed comes before the first one of a cycle, and is of the same slot."""
    pairs: Counter[tuple[int, int]] = Counter()
    for seed in range(600):
        before = -1
        for turn in range(2 * CYCLE):
            places = order_of_round(seed, turn, count)
            if turn % CYCLE == 0:
                before = places[0]
            for number in places:
                pairs[before, number] += 1
                before = number

    expected = pairs.total() / count**2
    assert len(pairs) == count**2
    assert max(abs(found - expected) for found in pairs.values()) < 5 * expected**0.5
