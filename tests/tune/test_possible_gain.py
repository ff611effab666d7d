"""The most that a treatment can gain follows from the parts of a step, and how certain they are."""

import math
import random

import pytest

from tests.tune.situations import make_parts, make_steps
from tuilab.commands.step_parts import BACKWARD, DATA, OPTIMIZER, REST
from tuilab.commands.tune.planning.measured_steps import MeasuredSteps
from tuilab.commands.tune.planning.possible_gain import gain_without

# What two processes that differ by 5 % may add: exp(2.5758 * sqrt(2) * 0.05).
BETWEEN_PROCESSES = 1.19978


def test_equal_steps_give_amdahls_law() -> None:
    steps = make_steps(data=20, rest=80)

    gain = gain_without(steps, {DATA: 0.0}, "waiting for data takes", process_sd=0.0)

    assert gain.at_most == pytest.approx(100 / 80)
    assert gain.whole_why == "waiting for data takes 20 % of a step; mean of 30 steps"


def test_what_stays_at_best_lowers_the_gain() -> None:
    steps = make_steps(optimizer=16, rest=84)

    gain = gain_without(steps, {OPTIMIZER: 0.05}, "the optimizer takes", process_sd=0.0)

    assert gain.at_most == pytest.approx(100 / (84 + 0.8))
    assert gain.detail == "mean of 30 steps, and at least 5 % of that time stays"


def test_several_parts_can_shrink_differently() -> None:
    steps = make_steps(backward=40, rest=20, data=40)

    gain = gain_without(steps, {BACKWARD: 0.25, REST: 0.0}, "both take", process_sd=0.0)

    assert gain.at_most == pytest.approx(100 / (40 + 10))


def test_processes_that_differ_raise_the_upper_end() -> None:
    steps = make_steps(optimizer=16, rest=84)

    gain = gain_without(steps, {OPTIMIZER: 0.05}, "the optimizer takes", process_sd=0.05)

    assert gain.at_most == pytest.approx(1 + 15.2 / 84.8 * BETWEEN_PROCESSES, rel=1e-5)


def test_ten_batches_give_a_student_interval() -> None:
    """Five batches wait 10 % and five 20 %, so log(R / K) has a standard error of 0.1307."""
    quick = make_parts(data=10, rest=90)
    slow = make_parts(data=20, rest=80)
    steps = MeasuredSteps(times=[quick, quick, slow, slow] * 5)

    gain = gain_without(steps, {DATA: 0.0}, "waiting for data takes", process_sd=0.0)

    assert gain.at_most == pytest.approx(1 + 300 / 1700 * math.exp(3.24984 * 0.130719), rel=1e-4)


def test_few_uneven_steps_bound_nothing() -> None:
    times = [make_parts(data=10, rest=90), make_parts(data=20, rest=80)]

    gain = gain_without(MeasuredSteps(times=times), {DATA: 0.0}, "waiting for data takes")

    assert gain.at_most is None
    assert gain.why == (
        "waiting for data takes 15 % of a step, mean of 2 steps, which is too uncertain for a bound"
    )


@pytest.mark.parametrize("count", [0, 1])
def test_one_step_bounds_nothing(count: int) -> None:
    times = [make_parts(data=10, rest=90)] * count

    gain = gain_without(MeasuredSteps(times=times), {DATA: 0.0}, "waiting for data takes")

    assert gain == (None, "too few steps were timed", "")


def test_a_part_that_fills_the_step_bounds_nothing() -> None:
    gain = gain_without(make_steps(data=100), {DATA: 0.0}, "waiting for data takes")

    assert gain.at_most is None
    assert "100 % of a step" in gain.why
    assert "nothing bounds the gain" in gain.why


def test_a_part_that_took_no_time_gains_nothing() -> None:
    gain = gain_without(make_steps(rest=100), {DATA: 0.0}, "waiting for data takes")

    assert gain.at_most == 1.0
    assert gain.is_too_small


def test_a_part_that_was_not_timed_bounds_nothing() -> None:
    steps = make_steps({OPTIMIZER: "no optimizer step was seen"}, rest=100)

    gain = gain_without(steps, {OPTIMIZER: 0.05}, "the optimizer takes")

    assert gain == (None, "optimizer was not timed: no optimizer step was seen", "")


def test_parts_longer_than_their_step_count_as_the_whole_step() -> None:
    """On a GPU, the host may wait for data while the GPU still computes."""
    step = make_parts(data=10)
    step = type(step)(step.took_ns // 2, step.parts)

    gain = gain_without(MeasuredSteps(times=[step] * 30), {DATA: 0.0}, "waiting for data takes")

    assert gain.at_most is None
    assert "takes 100 % of a step" in gain.why


@pytest.mark.parametrize("burst", [1, 4])
def test_interval_seldom_misses_the_true_gain(burst: int) -> None:
    """Of 600 upper ends, about 3 are too low. Waits in bursts are as long on average."""
    randomness = random.Random(burst)
    missed = 0
    for _ in range(600):
        times = []
        for number in range(40):
            wait = randomness.expovariate(1 / 10) * burst if number % burst == 0 else 0.0
            times.append(make_parts(data=wait, rest=randomness.uniform(80, 100)))
        steps = MeasuredSteps(times=times)
        gain = gain_without(steps, {DATA: 0.0}, "waiting for data takes", process_sd=0.0)
        assert gain.at_most is not None
        if gain.at_most < 100 / 90:
            missed += 1

    assert missed <= 12
