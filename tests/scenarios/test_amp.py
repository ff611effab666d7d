"""The scenarios about mixed precision give the exact values that their lessons promise; timings are not judged here."""

from collections.abc import Callable
from typing import Any

Result = Callable[..., dict[str, Any]]

TIMED = "mixed precision halves the time of a step; that depends on 16-bit matrix units and on layers that fill them"
LEARNED = "both nets paint 9 of 10 pixels or more right"


def refuted(run: dict[str, Any]) -> set[str]:
    return {text for text, verdict in run["verdicts"].items() if verdict != "SUPPORTED" and text != TIMED}


def saved(run: dict[str, Any]) -> dict[str, float]:
    return {memory["arm"]: memory["saved_bytes"] for memory in run["memory"]}


def test_both_precisions_learn_the_board_and_one_keeps_half_the_bytes(result: Result) -> None:
    run = result("checkerboard", "--device", "cpu")

    series = [(series["name"], series["arm"], series["count"]) for series in run["series"]]
    assert refuted(run) == set()
    assert saved(run) == {"fp32": 804_352, "amp": 411_328}
    assert series == [("loss", "fp32", 100), ("loss", "amp", 100), ("right", "fp32", 10), ("right", "amp", 10)]
    assert [race["arm"] for race in run["races"]] == ["fp32", "amp"]


def test_smaller_fields_are_not_learned_in_the_same_time(result: Result) -> None:
    run = result("checkerboard", "--device", "cpu", "--fields", "8")

    assert refuted(run) == {LEARNED}


def test_the_activations_of_64_channels_take_6_33_mb_in_32_bits_and_3_18_in_16(result: Result) -> None:
    run = result("checkerboard", "--device", "cpu", "--size", "64", "--channels", "64", "--steps", "40")

    loss = 64 * 64 * 4 * 2  # the loss keeps its two inputs in 32 bits
    assert {arm: round((total - loss) / 1e6, 2) for arm, total in saved(run).items()} == {"fp32": 6.33, "amp": 3.18}
