"""Hot paths take no more instructions than is kept in benchmarks/instructions.json: counts repeat, unlike times."""

import pytest

from benchmarks import instructions


@pytest.mark.tools
@pytest.mark.timeout(280)
def test_no_hot_path_takes_clearly_more_instructions_than_it_did() -> None:
    if why := instructions.why_not():
        pytest.skip(why)

    assert instructions.regressions(instructions.count_all(), instructions.kept()) == []


def test_what_takes_clearly_more_is_told_with_the_next_step() -> None:
    before = {"a": 2.0, "b": 2.0}

    assert instructions.regressions({"a": 2.2, "b": 2.4, "new": 9.0}, before) == [
        "b takes 20% more instructions than it did; mend it, or keep that with --keep"
    ]
