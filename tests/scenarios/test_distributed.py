"""The scenarios about several processes give the exact values that their lessons promise."""

from pathlib import Path
from typing import Any

import pytest

from tests.lessons import check_values

EACH = [1, 2, 3, 4, 5, 6, 7, 8]
EXACT: dict[str, dict[str, Any]] = {
    "dp-vs-ddp": {
        "copied": [30, 30],
        "ddp": [1, 10, 0],
        "lost": [0, 20],
        "parameters": [0, 4],
        "pass": [0, 1, 1, 1],
    },
    "bucket-order": {
        "first": [8],
        "again": [EACH] * 3,
        "as-called": [[*EACH, 8]] * 4,
        "reversed": 8,
        "exposed": [2, 9],
        "static": [[*EACH, 8]] * 2,
        "zeros": [8, 9],
        "nothing": [],
        "raises": ["RuntimeError", 2, True],
    },
    "no-sync": {
        "every": [4 << 20] * 20,
        "quarter": [5, 0.25],
        "backward": 80 << 20,
        "forward": 20 << 20,
        "calls": [13, 1],
        "together": True,
        "apart": False,
    },
    "fsdp-vs-ddp": {
        "ddp": 16 << 20,
        "fsdp": [2 << 20, 2 << 20, 4 << 20],
        "wire": [2.0, 3.0],
        "kept": [2.0, 2.0],
        "unit": [1.0, 4.0],
        "late": [0.0, True],
    },
    "load-balance": {"raises": ["RuntimeError", 2], "join": [3, 2, True], "half": [1, 2, 1.5]},
}


@pytest.mark.library
@pytest.mark.parametrize("lesson", EXACT)
def test_a_lesson_gives_the_values_that_it_promises(tmp_path: Path, lesson: str) -> None:
    check_values(tmp_path, lesson, EXACT[lesson])
