"""The scenarios about the basics give the exact values that their lessons promise."""

from collections.abc import Callable
from typing import Any

import pytest

Result = Callable[..., dict[str, Any]]

SPREAD = "intercept-spread"
LOTTERY = "source-intercept"
MEMORY = "memory"
STEEPNESS = "steepness"


def refuted(run: dict[str, Any]) -> set[str]:
    return {text for text, verdict in run["verdicts"].items() if verdict != "SUPPORTED"}


def last(run: dict[str, Any], name: str) -> list[float]:
    """The last value of a series for each arm."""
    return [series["last"] for series in run["series"] if series["name"] == name]


@pytest.mark.library
def test_five_seeds_end_at_five_intercepts_and_one_curvature(result: Result) -> None:
    run = result("curve-fit")

    assert refuted(run) == set()
    assert last(run, "intercept") == pytest.approx([2.863, 3.210, 3.236, 3.185, 5.146], abs=0.02)
    assert last(run, "curvature") == pytest.approx([5.002, 4.996, 4.996, 4.997, 4.963], abs=0.002)
    assert [series["arm"] for series in run["series"] if series["name"] == "loss"] == [f"seed {k}" for k in range(5)]


@pytest.mark.library
def test_with_patience_all_seeds_agree(result: Result) -> None:
    run = result("curve-fit", "--steps", "2000")

    assert refuted(run) == {SPREAD, LOTTERY}
    assert last(run, "intercept") == pytest.approx([3.0] * 5, abs=0.2)


@pytest.mark.library
def test_with_a_shorter_memory_all_seeds_agree_as_steep_as_it_is(result: Result) -> None:
    run = result("curve-fit", "--beta2", "0.99")

    assert refuted(run) == {SPREAD, LOTTERY, MEMORY}
    assert last(run, "intercept") == pytest.approx([3.0] * 5, abs=0.001)


@pytest.mark.library
def test_with_a_better_scale_all_seeds_agree_at_once(result: Result) -> None:
    run = result("curve-fit", "--span", "1")

    assert refuted(run) == {SPREAD, LOTTERY, MEMORY, STEEPNESS}
    assert last(run, "intercept") == pytest.approx([3.0] * 5, abs=0.001)
