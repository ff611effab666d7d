"""The scenarios about the basics give the exact values that their lessons promise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lessons import check_values

Result = Callable[..., dict[str, Any]]


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
    assert [series["arm"] for series in run["series"] if series["name"] == "loss"] == [
        f"seed {k}" for k in range(5)
    ]


MEASURED: dict[str, dict[str, Any]] = {
    "tensor-basics": {
        "ranks": [0, 1, 2, 3],
        "product": [3, 4],
        "sum": "RuntimeError",
        "no-import": "NameError",
        "normal": [2],
        "default": ["torch.float32", "torch.float32", "torch.int64"],
        "float64": ["torch.float64", "RuntimeError"],
        "kept": 0,
        "shared": 7,
        "bytes": [4 * 2**22, 0],
        "back": 7,
        "gradient": "RuntimeError",
    },
    "autograd-chain": {
        "minus-two": -2,
        "vanishes": 0,
        "nodes": 3,
        "one-pass": [61, 6],
        "accumulates": 2,
    },
    "linear-fit": {"not-three": 0},
    "same-code": {
        "meta": "RuntimeError",
        "flops": [41_943_040, 83_886_080],
        "operators": 22,
        "too-large": 2**41,
        "mask": "NotImplementedError",
    },
    "module-registry": {
        "sequential": 2410,
        "names": ["first.weight", "first.bias"],
        "gradients": [True] * 5,
        "moved": [True, True, False, False, False],
        "saved": 2,
        "moved-away": "RuntimeError",
        "hooks": [1, 0],
    },
}


@pytest.mark.library
@pytest.mark.parametrize("lesson", MEASURED)
def test_a_lesson_measures_what_it_says(tmp_path: Path, lesson: str) -> None:
    check_values(tmp_path, lesson, MEASURED[lesson])
