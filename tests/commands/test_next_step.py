"""What the story of a step says to look at: the part that most could be gained of, and nothing of what was not measured."""

import re

import pytest

from tuilab.catalogue.catalog import load
from tuilab.commands.next_step import LEAST, loading_of, next_step


@pytest.mark.parametrize(
    ("shares", "begins"),
    [
        ({"waits for data": 43, "backward": 30, "optimizer": 27}, "to look at: waits for data, 43 %: more workers"),
        ({"waits for data": 12, "logging": 30, "rest": 29}, "to look at: logging, 30 %: fewer values that are logged"),
        ({"waits for data": 12, "backward": 30, "optimizer": 38}, "to look at: optimizer, 38 %: an optimizer with fused=True"),
        ({"waits for data": 9, "forward": 20, "backward": 30, "rest": 39}, "to look at: rest, 39 %: what the loop does beside"),
        ({"waits for data": 9, "forward": 30, "backward": 50, "rest": 9}, "to look at: forward and backward, 80 %: what"),
        ({"backward": 60, "optimizer": 10, "forward + rest": 30}, "to look at: backward, 60 %: what computes; `tuilab ab`"),
        ({"backward": 30, "optimizer": 10, "forward + rest": 60}, ""),  # of which nobody knows what it is
        ({"backward": 2, "optimizer": 1, "forward + rest": 97}, "to look at: forward + rest, 97 %, as backward, mostly longer"),
        ({"backward": 15, "optimizer": 40, "forward + rest": 45}, "to look at: optimizer, 40 %"),
        ({"optimizer": 10, "forward + rest": 90}, ""),  # beside no backward that it could be held against
        ({}, ""),
    ],
)
def test_the_part_that_most_could_be_gained_of_is_told(shares: dict[str, float], begins: str) -> None:
    said = next_step(shares, LEAST)

    assert said.startswith(begins)
    assert bool(said) == bool(begins)
    assert next_step(shares, LEAST - 1) == ""


def test_of_several_ranks_nobody_says_that_a_backward_computes() -> None:
    assert next_step({"backward": 90}, LEAST, is_alone=False) == ""
    assert next_step({"backward": 70, "optimizer": 30}, LEAST, is_alone=False).startswith("to look at: optimizer")


@pytest.mark.parametrize("part", ["waits for data", "optimizer"])
def test_a_lesson_that_is_named_is_there(part: str) -> None:
    (named,) = re.findall(r"`tuilab run ([\w-]+)`", next_step({part: 90}, LEAST))

    assert named in {scenario.id for scenario in load()}


def loads(*workers: int, is_iterable: bool = False) -> dict[str, object]:
    """Return what a process on four cores says that began loaders with so many workers."""
    return {"cores": 4, "loaders": [{"workers": count, "is_iterable": is_iterable} for count in workers]}


@pytest.mark.parametrize(
    ("own", "others", "cores", "says"),
    [
        (loads(0), [], 4, "more workers of the DataLoader, which has none for 4 cores, or less work for an item"),
        (loads(2, 0), [], 64, "more workers of the DataLoader, which has 2 for 4 cores, or less work for an item"),
        (loads(4), [], 4, "less work for an item, or batches that are prepared in advance; 4 processes load data already"),
        (loads(2), [], 2, "less work for an item, or batches that are prepared in advance; 2 processes load data already"),
        (loads(1), [loads(1), loads(2)], 4, "less work for an item, or batches that are prepared in advance; 4 processes"),
        (loads(0), [loads(0)], 2, "less work for an item, or batches that are prepared in advance; 2 processes load"),
        (loads(0), [{}], 2, "less work for an item, or batches that are prepared in advance; 2 processes load"),
        (loads(0), [], 1, "less work for an item, or batches that are prepared in advance; 1 process loads data already"),
        (loads(1, is_iterable=True), [], 4, "more workers of the DataLoader, which has 1 for 4 cores, if its IterableDataset"),
        ({}, [], 4, "more workers of the DataLoader, or less work for an item"),
        ({"loaders": [{"workers": "many"}, 3], "cores": "all"}, [], 4, "more workers of the DataLoader, or less work"),
    ],
)
def test_advice_on_data_looks_at_workers_and_cores(
    own: dict[str, object], others: list[dict[str, object]], cores: int, says: str
) -> None:
    loading = loading_of(own, others, cores)

    assert next_step({"waits for data": 40}, LEAST, loading=loading).startswith(f"to look at: waits for data, 40 %: {says}")


def test_advice_on_data_of_a_busy_machine_is_no_more_workers() -> None:
    loading = loading_of(loads(0), [], 4, is_starved=True)

    said = next_step({"waits for data": 40}, LEAST, loading=loading)
    assert said.endswith(
        "40 %: less work for an item, or batches that are prepared in advance; "
        "other processes use the cores, so more workers help only if items wait, as for a disk"
    )


def test_advice_on_data_of_workers_that_leave_cores_idle_is_more_workers() -> None:
    loading = loading_of(loads(2), [], 2, are_idle=True)

    said = next_step({"waits for data": 40}, LEAST, loading=loading)
    assert "40 %: more workers of the DataLoader, which has 2 for 2 cores with time left, or less work" in said
