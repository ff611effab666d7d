"""The scenarios about the GPU give the exact values that their lessons promise, as far as a CPU shows them."""

from pathlib import Path

import pytest

from tests.lessons import check_values


@pytest.mark.library
def test_a_step_waits_six_times_and_a_mended_loop_when_it_reads(tmp_path: Path) -> None:
    values = {"read": [1] * 9, "blind": [0, 0, 0], "meta": ["print"], "free": [], "step": 6, "epoch": [600, 5]}

    check_values(tmp_path, "sync-count", values)
