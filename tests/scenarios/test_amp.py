"""The scenarios about mixed precision give the exact values that their lessons promise; timings are not judged here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lessons import check_values

Result = Callable[..., dict[str, Any]]

TIMED = {"half-the-time", "longer-on-cpu", "small-net", "tf32"}
EXACT: dict[str, dict[str, Any]] = {
    "autocast-rules": {
        "mean": "bfloat16",
        "convolution": ["bfloat16", "bfloat16"],
        "default-dtype": ["bfloat16", "float16", "bfloat16"],
        "cpu-list": ["bfloat16"] * 4,
        "copies": [3, 1],
        "inside": 90000,
        "by-hand": 90112,
    },
    "gradscaler": {
        "skips": 16,
        "growths": 19,
        "skipped": [False],
        "defaults": 2000,
        "bfloat16": [0, 2**21],
        "float32": "torch.float32",
        "new-scale": 3,
    },
    "grad-underflow": {
        "zeros": 1,
        "bfloat16": True,
        "overflow": False,
        "no-overflow": True,
        "stands-still": 1,
    },
    "layer-precision": {
        "bytes": [332584, 166292],
        "autocast": True,
        "fits": [True, 0],
        "update": 1,
    },
    "dims-of-8": {
        "aligned": [128, 1024, 128, 1024],
        "zeros": True,
        "masked": [True, True],
        "batch": 393216,
    },
    "matmul-dtypes": {},  # its numbers hang on the library that multiplies
}


def refuted(run: dict[str, Any]) -> set[str]:
    return {
        text
        for text, verdict in run["verdicts"].items()
        if verdict != "SUPPORTED" and text not in TIMED
    }


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
@pytest.mark.parametrize("lesson", EXACT)
def test_a_lesson_gives_the_values_that_it_promises(tmp_path: Path, lesson: str) -> None:
    check_values(tmp_path, lesson, EXACT[lesson])
