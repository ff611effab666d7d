"""Compare what a user predicted for a lesson with what was measured."""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from tuilab.record.events import RunStarted
from tuilab.record.summary_parts import Claim
from tuilab.text.words import format_number

_RIGHT_FACTOR = 1.1
_NEAR_FACTOR = 2.0


class Nearness(StrEnum):
    RIGHT = "right"
    NEAR = "near"  # within a factor of two
    OFF = "off"


NEARNESS_TEXTS = {
    Nearness.RIGHT: "right",
    Nearness.NEAR: "near (within a factor of 2)",
    Nearness.OFF: "off",
}


class MeasuredAnswer(NamedTuple):
    """The measured answer to the question of a lesson, and the claim that it belongs to."""

    value: float
    claim: Claim


def find_answer(claims: Iterable[Claim]) -> MeasuredAnswer | None:
    """Return the answer to the question of the lesson; None if it is not measured yet.

    An answer without a value of its own is the ratio that a verdict estimated.
    """
    for claim in claims:
        if claim.answered is None:
            continue
        value = claim.answered.value
        if value is None and claim.declared and claim.verdict:
            value = claim.verdict.estimate
        if value is not None:
            return MeasuredAnswer(value, claim)
    return None


def describe_unscored(run: RunStarted) -> str:
    """Return why a prediction for a run is not scored, or an empty string.

    The question is about the lesson with its usual parameters. Only the device may differ.
    """
    changes = []
    for name in run.changed:
        if name != "device" and name in run.params:
            changes.append(f"{name} is {run.params[name]}")
    if not changes:
        return ""
    return f"not scored: {', '.join(changes)}, and the question is about the lesson as it comes"


def rate_prediction(predicted: float, measured: float) -> Nearness:
    """Return RIGHT within a factor of 1.1, NEAR within a factor of two, else OFF."""
    if predicted == measured or (math.isnan(predicted) and math.isnan(measured)):
        return Nearness.RIGHT
    if not (math.isfinite(predicted) and math.isfinite(measured)):
        return Nearness.OFF
    if predicted * measured <= 0:  # one of them is 0, or their signs differ
        return Nearness.OFF
    factor = max(predicted / measured, measured / predicted)
    if factor <= _RIGHT_FACTOR:
        return Nearness.RIGHT
    if factor <= _NEAR_FACTOR:
        return Nearness.NEAR
    return Nearness.OFF


def describe_prediction(run: RunStarted | None, claims: Iterable[Claim]) -> str:
    """Return what was predicted and what was measured; empty if nothing was predicted."""
    if run is None or run.prediction is None:
        return ""
    predicted = f"you predicted {run.prediction:.6g}"
    answer = find_answer(claims)
    if answer is None:
        return predicted
    nearness = NEARNESS_TEXTS[rate_prediction(run.prediction, answer.value)]
    sentence = f"{predicted}; measured {format_number(answer.value)}: {nearness}"
    if unscored := describe_unscored(run):
        return f"{sentence}; {unscored}"
    return sentence
