"""The rounds of a race: when the warm-up is over."""

import pytest

from tuilab.lab.races.rounds import has_settled


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([3, 2, 1.01, 1, 1, 1], False),  # the three before drifted still
        ([3, 2, 1, 1.01, 1, 1, 1.02, 1], True),
        ([1, 1, 1, 1, 1], None),  # too few to tell
        ([1, 1, 1, 1.04, 1.04, 1.04], False),
    ],
)
def test_times_have_settled_when_the_last_three_are_those_before(times: list[float], expected: bool | None) -> None:
    assert has_settled({"arm": times}, 3) is expected
    assert has_settled({"arm": times, "steady": [1.0] * 8}, 3) is expected


@pytest.mark.parametrize(
    ("times", "expected"),
    [([], None), ([1, 1, 1], None), ([1, 1.01, 1, 1], True), ([2, 1.2, 1, 1], False), ([2, 1, 1, 1, 1], True)],
)
def test_on_a_gpu_four_blocks_tell(times: list[float], expected: bool | None) -> None:
    """More than six of 50 ms would not fit the third of a race of two seconds."""
    assert has_settled({"arm": times}, 2) is expected
