"""The scenarios about training give the exact values that their lessons promise."""

from pathlib import Path
from typing import Any

import pytest

from tests.lessons import claimed, source_of
from tuilab.record.events import Measured
from tuilab.record.holding import holds

EXACT: dict[str, dict[str, Any]] = {
    "grad-clip": {"explodes": 1, "by-norm": [[6, 8]], "by-value": [[10, 10]], "raised": "RuntimeError"},
    "conv-bias": {"parameters": [584, 8], "no-features": "TypeError", "linear": "ValueError"},
}


@pytest.mark.library
@pytest.mark.parametrize("lesson", EXACT)
def test_a_lesson_gives_the_values_that_it_promises(tmp_path: Path, lesson: str) -> None:
    claims = claimed(tmp_path, source_of(lesson))

    assert [key for key, claim in claims.items() if not holds(claim)] == []
    assert {key: claims[key].got for key in EXACT[lesson]} == {key: Measured.of(got) for key, got in EXACT[lesson].items()}
