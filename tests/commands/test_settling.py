"""Where the steady steps of a process begin."""

import random

import pytest

from tuilab.commands.ab.step_time import steady


def test_slow_first_steps_are_cut() -> None:
    found = steady([5.0] * 18 + [1.0] * 82)

    assert found is not None
    assert (found.step_s, found.cut, found.is_settled) == (1.0, 20, True)


def test_steps_that_grow_slower_and_slower_never_settle_and_are_halved() -> None:
    found = steady([1.1**step for step in range(100)])

    assert found is not None
    assert (found.cut, found.is_settled) == (50, False)


def test_steps_settle_by_other_times_if_there_are_any() -> None:
    found = steady([1.1**step for step in range(100)], [5.0] * 18 + [1.0] * 82)

    assert found is not None
    assert (found.cut, found.is_settled) == (20, True)
    assert found.step_s == pytest.approx(sum(1.1**step for step in range(20, 100)) / 80)


def test_noise_is_no_drift() -> None:
    lot = random.Random(1)
    found = steady([1 + abs(lot.gauss(0, 0.05)) for _ in range(400)])

    assert found is not None and found.is_settled
    assert found.cut <= 40


def test_a_few_steps_are_too_few() -> None:
    assert steady([1.0] * 4) is None
    found = steady([9.0, 1.0, 1.0, 1.0, 1.0])
    assert found is not None and found.step_s == 1.0


def test_steps_that_take_turns_in_waiting_count_as_all_of_them_together() -> None:
    found = steady([0.04 if step % 4 == 0 else 0.001 for step in range(80)])

    assert found is not None
    assert found.step_s == pytest.approx(
        (0.04 + 3 * 0.001) / 4, rel=0.05
    )  # a window is no whole number of turns
