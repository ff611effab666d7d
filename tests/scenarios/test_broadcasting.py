"""The scenarios about broadcasting give the exact values that their lessons promise; timings are not judged here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lessons import check_values, reason_of

Result = Callable[..., dict[str, Any]]

TIMED = {
    "twice-as-fast",
    "unbind",
    "sum",
}


def evidence(run: dict[str, Any]) -> dict[str, str]:
    """What was measured for each exact claim."""
    return {claim["key"]: reason_of(claim) for claim in run["claims"] if claim["key"] not in TIMED}


def refuted(run: dict[str, Any]) -> list[str]:
    passed = ("SUPPORTED", "NOT TESTABLE HERE")
    return [
        key
        for key, verdict in run["verdicts"].items()
        if verdict not in passed and key not in TIMED
    ]


def race_arms(run: dict[str, Any]) -> list[str]:
    return sorted(race["arm"] for race in run["races"])


@pytest.mark.library
def test_the_trap_sums_to_12_and_learns_nothing_but_the_mean(result: Result) -> None:
    run = result("broadcast-trap")

    slopes = {
        series["arm"]: series["last"] for series in run["series"] if series["name"] == "slope"
    }
    assert run["exit_code"] == 0
    assert refuted(run) == []
    assert list(evidence(run).values())[:5] == [
        "measured [12, 6]",
        "measured [5, 7]",
        "holds",
        "measured 10.5 and 1",
        "measured [64, 64]",
    ]
    assert {arm: round(slope, 3) + 0 for arm, slope in slopes.items()} == {
        "crossed": 0,
        "paired": 3,
    }


@pytest.mark.library
def test_targets_that_keep_their_dimension_spring_no_trap(result: Result) -> None:
    run = result("broadcast-trap", "--targets", "column")

    assert run["exit_code"] == 1
    assert refuted(run) == [
        "table",
        "slope-0",
    ]
    assert evidence(run)["table"] == "measured [64, 1], claimed [64, 64]"


@pytest.mark.library
def test_a_split_layer_computes_the_same_with_fewer_operations_and_bytes(result: Result) -> None:
    run = result("broadcast-merge")

    found = evidence(run)
    assert refuted(run) == []
    assert found["no-activation"] == "measured TypeError: 'NoneType' object is not callable"
    assert found["source-shape"] == "measured [[5, 3, 10], [5, 3, 10]]"
    assert found["source-operations"] == "measured [3300, 2100]"
    assert found["source-bytes"] == "measured [1260, 1020]"
    assert found["quarter-operations"] == "measured 0.1146"
    assert found["half-bytes"] == "measured 0.387"
    assert race_arms(run) == ["split", "tile"]


@pytest.mark.library
def test_a_loop_over_500_rows_calls_1001_operators_and_sum_one(result: Result) -> None:
    run = result("row-reduce")

    found = evidence(run)
    assert refuted(run) == []
    assert found["operators"] == "measured [1001, 502, 1]"
    assert found["backward"] == "measured [999, 1, 0]"
    assert race_arms(run) == ["index", "sum", "unbind"]
    assert all(claim["estimate"] is not None for claim in run["claims"] if claim["key"] in TIMED)


@pytest.mark.library
def test_a_loop_over_5_rows_calls_only_11_times_as_many_operators(result: Result) -> None:
    run = result("row-reduce", "--rows", "5")

    assert run["exit_code"] == 1
    assert refuted(run) == ["square"]
    assert evidence(run)["operators"] == "measured [11, 7, 1]"
    assert evidence(run)["square"] == "measured 4.667, claimed 4 ± 0.2"
    assert evidence(run)["backward"] == "claimed for rows=500"


MEASURED: dict[str, dict[str, Any]] = {
    "operator-table": {
        "same": 14,
        "bits": ["2", "7", "5", "-7"],
        "logical": ["True", "True", "False", "False"],
        "narrow": "TypeError",
        "floats": 4,
        "words": 4,
        "floor": [-4, 1, -1],
        "alias": [7, -6],
        "power": [36, 49],
        "new": [6, -7],
        "cast": "RuntimeError",
        "leaf": "RuntimeError",
        "overwritten": "RuntimeError",
    },
    "squeeze-dim": {
        "number": [],
        "batches": [1, 1, 0],
        "together": "RuntimeError",
        "named": [65],
        "silent": [3, 2],
        "reduced": ["IndexError", 4.0],
        "table": [64, 64],
    },
    "broadcast-basics": {
        "operators": [1, 2],
        "bytes": 2,
        "peak": 2,
        "stride": [1, 0],
        "written": "RuntimeError",
        "gradient": [1024, 1024],
        "saved": [256 * 1025 * 4, 256 * 1024 * 8],
    },
}


@pytest.mark.library
@pytest.mark.parametrize("lesson", MEASURED)
def test_a_lesson_measures_what_it_says(tmp_path: Path, lesson: str) -> None:
    check_values(tmp_path, lesson, MEASURED[lesson])
