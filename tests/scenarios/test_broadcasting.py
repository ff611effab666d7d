"""The scenarios about broadcasting give the exact values that their lessons promise; timings are not judged here."""

from collections.abc import Callable
from typing import Any

import pytest

Result = Callable[..., dict[str, Any]]

TIMED = {
    "the split layer is at least twice as fast",
    "unbind is at least 1.3 times faster than x[i]",
    "sum is at least 100 times faster than x[i]",
}


def evidence(run: dict[str, Any]) -> dict[str, str]:
    """What was measured for each exact claim."""
    return {claim["text"]: claim["why"] for claim in run["claims"] if claim["text"] not in TIMED}


def refuted(run: dict[str, Any]) -> list[str]:
    return [text for text, verdict in run["verdicts"].items() if verdict != "SUPPORTED" and text not in TIMED]


def race_arms(run: dict[str, Any]) -> list[str]:
    return sorted(race["arm"] for race in run["races"])


@pytest.mark.library
def test_the_trap_sums_to_12_and_learns_nothing_but_the_mean(result: Result) -> None:
    run = result("broadcast-trap")

    slopes = {series["arm"]: series["last"] for series in run["series"] if series["name"] == "slope"}
    assert run["exit_code"] == 0
    assert refuted(run) == []
    assert list(evidence(run).values())[:5] == [
        "measured [12, 6]",
        "measured [5, 7]",
        "measured True",
        "measured [10.5, 1]",
        "measured [64, 64]",
    ]
    assert {arm: round(slope, 3) + 0 for arm, slope in slopes.items()} == {"crossed": 0, "paired": 3}


@pytest.mark.library
def test_targets_that_keep_their_dimension_spring_no_trap(result: Result) -> None:
    run = result("broadcast-trap", "--targets", "column")

    assert run["exit_code"] == 1
    assert refuted(run) == [
        "the crossed difference is a table of rows x rows",
        "the crossed loss finds slope 0 and predicts the mean of the targets for every input",
    ]
    assert evidence(run)["the crossed difference is a table of rows x rows"] == "measured [64, 1], claimed [64, 64]"


@pytest.mark.library
def test_a_split_layer_computes_the_same_with_fewer_operations_and_bytes(result: Result) -> None:
    run = result("broadcast-merge")

    found = evidence(run)
    assert refuted(run) == []
    assert found["at the size of the source operations fall from 3300 to 2100"] == "measured [3300, 2100]"
    assert found["at the size of the source bytes kept for backward fall from 1260 to 1020"] == "measured [1260, 1020]"
    assert found["the split layer needs at most a quarter of the operations"] == "measured 0.114583"
    assert found["the split layer keeps at most half of the bytes for backward"] == "measured 0.387019"
    assert race_arms(run) == ["split", "tile"]


@pytest.mark.library
def test_a_narrow_shared_input_leaves_little_to_save(result: Result) -> None:
    run = result("broadcast-merge", "--shared", "8")

    assert run["exit_code"] == 1
    assert refuted(run) == [
        "the split layer needs at most a quarter of the operations",
        "the split layer keeps at most half of the bytes for backward",
    ]


@pytest.mark.library
def test_a_loop_over_500_rows_calls_1001_operators_and_sum_one(result: Result) -> None:
    run = result("row-reduce")

    found = list(evidence(run).values())
    assert refuted(run) == []
    assert found[:4] == ["measured [1001, 502, 1]", "measured [1001, 502, 2]", "measured 1001", "measured [500, 10]"]
    assert race_arms(run) == ["index", "sum", "unbind"]
    assert all(claim["estimate"] is not None for claim in run["claims"] if claim["text"] in TIMED)


@pytest.mark.library
def test_a_loop_over_5_rows_calls_only_11_times_as_many_operators(result: Result) -> None:
    run = result("row-reduce", "--rows", "5")

    assert run["exit_code"] == 1
    assert refuted(run) == ["the loop calls at least 100 times as many operators as sum"]
    assert next(iter(evidence(run).values())) == "measured [11, 7, 1]"
