"""Every numbered case of faults has a test."""

import re
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.faults.cases import ALL, ELSEWHERE, describe_skipped, numbers_of

pytestmark = pytest.mark.faults


def test_every_case_has_a_test_that_is_named_by_its_number_or_is_listed() -> None:
    here = [
        f"{file.name}::{name}"
        for file in Path(__file__).parent.glob("test_*.py")
        for name in names_in(file)
    ]
    listed = [
        test
        for test in ELSEWHERE.values()
        if test.partition("::")[2] in names_in(CHECKOUT / test.partition("::")[0])
    ]

    assert len(listed) == len(ELSEWHERE)
    assert sorted(
        {number for test in here for number in numbers_of(test)} | set(ELSEWHERE)
    ) == list(ALL)


def names_in(file: Path) -> list[str]:
    return re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)


def test_what_was_skipped_is_told_in_one_line_with_the_reason() -> None:
    skipped = [("a.py::test_17_x", "no freezer"), ("a.py::test_1_3_y[z]", "no strace")]

    assert describe_skipped(["a.py::test_3_w"], skipped) == (
        "faults: 2 of 87 cases skipped: 1 (no strace), 17 (no freezer), 3 in part (no strace)"
    )
    assert describe_skipped(["a.py::test_3_w"], []) == ""
