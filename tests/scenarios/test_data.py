"""The scenarios about loading data give the exact values that their lessons promise; timings are not judged here."""

from collections.abc import Callable
from typing import Any

import pytest

Result = Callable[..., dict[str, Any]]

SLOW = "slow-items"


def evidence(run: dict[str, Any]) -> dict[str, str]:
    return {claim["key"]: claim["why"] for claim in run["claims"]}


def arms_of(run: dict[str, Any], name: str) -> set[str]:
    return {series["arm"] for series in run["series"] if series["name"] == name}


@pytest.mark.library
def test_n_workers_are_n_processes_and_every_item_comes_once(result: Result) -> None:
    run = result("loader-workers")

    why = evidence(run)
    assert run["state"] == "succeeded"
    assert why["processes"] == "measured [0, 2, 4]"
    assert run["verdicts"]["order"] == "SUPPORTED"
    assert run["verdicts"]["waits"] == "SUPPORTED"
    assert arms_of(run, "wait_ms") == arms_of(run, "batches_ready") == {"0 workers", "2 workers", "4 workers"}


@pytest.mark.library
def test_one_batch_keeps_one_worker_busy_and_free_items_leave_nothing_to_hide(result: Result) -> None:
    run = result("loader-workers", "--batch", "64", "--item-ms", "0")

    why = evidence(run)
    assert why["processes"] == "measured [0, 1, 1], claimed [0, 2, 4]"
    assert run["verdicts"][SLOW] != "SUPPORTED"
    assert run["exit_code"] == 1


@pytest.mark.library
def test_a_staged_copy_is_two_copies_and_the_loader_pins_only_for_a_gpu(result: Result) -> None:
    run = result("pin-memory")

    assert run["state"] == "succeeded"
    assert evidence(run)["bytes-moved"] == "measured [2, 1]"
    assert run["verdicts"]["loader-pins"] == "SUPPORTED"
    assert arms_of(run, "gb_per_s") >= {"staged", "direct"}


@pytest.mark.library
def test_without_pin_nothing_is_pinned_and_a_small_buffer_still_copies_twice(result: Result) -> None:
    run = result("pin-memory", "--no-pin", "--buffer-kb", "1000")

    why = evidence(run)
    assert why["bytes-moved"] == "measured [2, 1]"
    assert run["verdicts"]["loader-pins"] == "REFUTED"
