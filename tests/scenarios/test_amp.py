"""The scenarios about mixed precision give the exact values that their lessons promise; timings are not judged here."""

from collections.abc import Callable
from typing import Any

import pytest

Result = Callable[..., dict[str, Any]]

TIMED = {"half-the-time", "longer-on-cpu"}
LEARNED = "both-learn"


def refuted(run: dict[str, Any]) -> set[str]:
    return {text for text, verdict in run["verdicts"].items() if verdict != "SUPPORTED" and text not in TIMED}


def saved(run: dict[str, Any]) -> dict[str, float]:
    (bars,) = run["bars"]
    return dict(zip(bars["names"], bars["values"], strict=True))


@pytest.mark.library
def test_both_precisions_learn_the_board_and_one_keeps_half_the_bytes(result: Result) -> None:
    run = result("checkerboard", "--device", "cpu")

    series = [(series["name"], series["arm"], series["count"]) for series in run["series"]]
    assert refuted(run) == set()
    assert saved(run) == {"fp32": 804_352, "amp": 411_328}
    assert series == [
        ("loss", "fp32", 100),
        ("loss", "amp", 100),
        ("apart", "", 100),
        ("right", "fp32", 10),
        ("right", "amp", 10),
    ]
    assert [race["arm"] for race in run["races"]] == ["fp32", "amp"]


@pytest.mark.library
def test_smaller_fields_are_not_learned_in_the_same_time(result: Result) -> None:
    run = result("checkerboard", "--device", "cpu", "--fields", "8")

    assert refuted(run) == {LEARNED}
