"""What the story of a step says to look at: the part that most could be gained of, and nothing of what was not measured."""

import re

import pytest

from tuilab.catalogue.catalog import load
from tuilab.commands.next_step import LEAST, next_step


@pytest.mark.parametrize(
    ("shares", "begins"),
    [
        ({"waits for data": 43, "backward": 30, "optimizer": 27}, "to look at: waits for data, 43 %: more workers"),
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
