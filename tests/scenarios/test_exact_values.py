"""What the exact claims of a lesson measure on a CPU, by key: the whole lesson runs in this process, with --quick."""

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.inside import claims_in, source_of
from tuilab.record.holding import holds, is_equal

EXACT: dict[str, dict[str, Any]] = {
    "where-nan": {
        "value": [0, 2],
        "gradient": [nan, 0.25],
        "inside": [[0, 2], [0, 0.25]],
        "too-late": [nan, nan, inf, inf],
        "selected": [0, 0.25],
        "others": [nan, nan],
        "overflow": [[[100], [nan]], [[100], [1]]],
        "norm": [[nan, nan], [0, 0]],
        "one-row": [True, 16],
        "anomaly": True,
    },
}


@pytest.mark.library
@pytest.mark.parametrize("lesson", EXACT)
def test_a_lesson_measures_the_values_that_it_promises(tmp_path: Path, lesson: str) -> None:
    claims = claims_in(tmp_path, source_of(lesson))

    found = {claim.key: claim.got.value for claim in claims}
    assert [claim.key for claim in claims if not holds(claim)] == []
    assert list(found) == list(EXACT[lesson])
    assert [key for key, value in EXACT[lesson].items() if not is_equal(found[key], value, 1e-6)] == []
