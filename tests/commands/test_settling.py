"""Where the steady steps of a process begin."""

import random

from tuilab.commands.ab.settling import steady


def test_slow_first_steps_are_cut() -> None:
    found = steady([5.0] * 18 + [1.0] * 82)

    assert found is not None
    assert (found.step_s, found.cut, found.is_settled) == (1.0, 20, True)


def test_steps_that_grow_slower_and_slower_never_settle_and_are_halved() -> None:
    found = steady([1.1**step for step in range(100)])

    assert found is not None
    assert (found.cut, found.is_settled) == (50, False)


def test_noise_is_no_drift() -> None:
    lot = random.Random(1)
    found = steady([1 + abs(lot.gauss(0, 0.05)) for _ in range(400)])

    assert found is not None and found.is_settled
    assert found.cut <= 40


def test_a_few_steps_are_too_few() -> None:
    assert steady([1.0] * 4) is None
    found = steady([9.0, 1.0, 1.0, 1.0, 1.0])
    assert found is not None and found.step_s == 1.0
