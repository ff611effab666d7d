"""The scenarios about observing give the exact values that their lessons promise."""

from pathlib import Path
from typing import Any

import pytest

from tests.lessons import check_values

EXACT: dict[str, dict[str, Any]] = {
    "debug-apis": {
        "checks": [51, 51, 51, 153],
        "traces": [32, 32, 0],
        "nan-only": [True, False],
        "profiler": [0, True],
        "gradcheck": [4, 10, 34, 130],
        "fast": 4,
        "float32": "GradcheckError:",
    },
    "profiler": {
        "counts": [3, 3, 1, 2],
        "nested": ["aten::convolution", "aten::_convolution", True],
        "forward": 54_458_368,
        "shapes": [3, [1, 1, 1]],
        "label": [3, 0],
        "schedule": [2, 0],
        "cprofile": [3, 1, 0],
        "renamed": [True, False, ""],
    },
    "lightning": {"rest": [3, True], "mixed": ["torch.bfloat16", "torch.float32"]},
}


@pytest.mark.library
@pytest.mark.parametrize("lesson", EXACT)
def test_a_lesson_gives_the_values_that_it_promises(tmp_path: Path, lesson: str) -> None:
    check_values(tmp_path, lesson, EXACT[lesson])
