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
}


@pytest.mark.library
@pytest.mark.parametrize("lesson", EXACT)
def test_a_lesson_gives_the_values_that_it_promises(tmp_path: Path, lesson: str) -> None:
    check_values(tmp_path, lesson, EXACT[lesson])
