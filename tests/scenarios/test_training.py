"""The scenarios about training give the exact values that their lessons promise."""

from pathlib import Path
from typing import Any

import pytest

from tests.lessons import check_values

EXACT: dict[str, dict[str, Any]] = {
    "grad-clip": {
        "explodes": 1,
        "finite": [100, 100],
        "graves": 100,
        "by-norm": [[6, 8]],
        "by-value": [[10, 10]],
        "raised": "RuntimeError",
    },
    "channels-last": {
        "strides": [[48, 16, 4, 1], [48, 1, 12, 3], True],
        "one-channel": [True, True, True],
        "dimensions": [[3, 5], [192, 1, 48, 12, 3]],
        "weights": [False, True],
    },
    "conv-bias": {"parameters": [584, 8], "no-features": "TypeError", "linear": "ValueError"},
}


@pytest.mark.library
@pytest.mark.parametrize("lesson", EXACT)
def test_a_lesson_gives_the_values_that_it_promises(tmp_path: Path, lesson: str) -> None:
    check_values(tmp_path, lesson, EXACT[lesson])
