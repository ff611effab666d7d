"""The baseline of a scenario, and which run another one is held against without it."""

from pathlib import Path
from typing import Any

import pytest

from tests.tui.made_up import finished
from tuilab.errors import UsageError
from tuilab.runs import notes
from tuilab.runs.beside.against import held_against
from tuilab.runs.beside.baseline import baseline_of, is_baseline, needed_baseline, pin, unpin
from tuilab.runs.ledger_cache import LedgerCache


@pytest.fixture
def runs(root: Path) -> list[Path]:
    """Four runs, one after another; the third is quick, the second failed."""
    kinds: list[dict[str, Any]] = [{}, {"state": "failed"}, {"quick": True}, {}]
    return [finished(root, {"a": "SUPPORTED"}, at_s=1.8e9 + at, end=str(at) * 6, **more) for at, more in enumerate(kinds)]


def test_there_is_one_baseline_of_a_scenario_the_one_that_was_made_one_last(root: Path, runs: list[Path]) -> None:
    other = finished(root, {"a": "SUPPORTED"}, name="xyy", end="ffffff")
    said = [pin(other), pin(runs[3]), pin(runs[0])]

    assert said[1:] == ["333333 is the baseline of softmax", "000000 is the baseline of softmax, instead of 333333"]
    assert baseline_of(runs[3]) == runs[0] and baseline_of(other) == other
    assert [is_baseline(run) for run in runs] == [True, False, False, False]


def test_of_several_that_were_tagged_by_hand_the_newest_is_the_baseline(runs: list[Path]) -> None:
    for run in runs[:2]:
        notes.add(run, tags=["baseline"])

    assert baseline_of(runs[3]) == runs[1]


def test_a_run_that_is_no_baseline_any_more_leaves_none(runs: list[Path]) -> None:
    pin(runs[0])
    unpin(runs[0])

    assert baseline_of(runs[1]) is None


def test_a_run_is_held_against_the_baseline_which_is_held_against_what_came_before_it(root: Path, runs: list[Path]) -> None:
    ledger = LedgerCache(root)
    without = [held_against(run, ledger) for run in runs]
    pin(runs[3])
    beside = [held_against(run, ledger) for run in runs]

    assert without == [(None, False), (runs[0], False), (None, False), (runs[0], False)]
    assert beside == [*[(runs[3], True)] * 3, (runs[0], False)]


def test_what_lacks_for_a_comparison_is_said(runs: list[Path]) -> None:
    with pytest.raises(UsageError, match=r"softmax has no baseline run to compare with; .*tuilab note RUN --tag baseline"):
        needed_baseline(runs[0])
    pin(runs[0])
    with pytest.raises(UsageError, match="000000 is itself the baseline of softmax"):
        needed_baseline(runs[0])

    assert needed_baseline(runs[1]) == runs[0]
