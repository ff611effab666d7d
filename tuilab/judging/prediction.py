"""What the user predicted beside what was measured: how near it came."""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from tuilab.record.events import RunStarted
from tuilab.record.parts import Claim
from tuilab.words import number

_RIGHT, _NEAR = 1.1, 2.0  # times as much, or as little


class Nearness(StrEnum):
    RIGHT = "right"
    NEAR = "near"  # within a factor of two
    OFF = "off"


WORDS = {Nearness.RIGHT: "right", Nearness.NEAR: "near (within a factor of 2)", Nearness.OFF: "off"}


class Answer(NamedTuple):
    """What came out for the question of a lesson, and by which claim."""

    value: float
    claim: Claim


def answer_of(claims: Iterable[Claim]) -> Answer | None:
    """Return the answer to the question of the lesson, as far as it is measured."""
    for claim in claims:
        if claim.answered is None:
            continue
        value = claim.answered.value
        if value is None and claim.declared and claim.verdict:
            value = claim.verdict.estimate
        if value is not None:
            return Answer(value, claim)
    return None


def not_scored(run: RunStarted) -> str:
    """Return why what was predicted for a run is not scored: the question is about the lesson as it comes; else nothing."""
    others = [f"{name} is {run.params[name]}" for name in run.changed if name != "device" and name in run.params]
    return f"not scored: {', '.join(others)}, and the question is about the lesson as it comes" if others else ""


def nearness(predicted: float, measured: float) -> Nearness:
    """Say how near a prediction is: right within a factor of 1.1, near within a factor of two."""
    if predicted == measured or (math.isnan(predicted) and math.isnan(measured)):
        return Nearness.RIGHT
    if not (math.isfinite(predicted) and math.isfinite(measured)) or predicted * measured <= 0:
        return Nearness.OFF
    factor = max(predicted / measured, measured / predicted)
    return Nearness.RIGHT if factor <= _RIGHT else Nearness.NEAR if factor <= _NEAR else Nearness.OFF


def told(run: RunStarted | None, claims: Iterable[Claim]) -> str:
    """Return in a sentence what was predicted for a run and what came out; of one without a prediction nothing."""
    if run is None or run.prediction is None:
        return ""
    found = answer_of(claims)
    if found is None:
        return f"you predicted {run.prediction:.6g}"
    near = WORDS[nearness(run.prediction, found.value)]
    said = f"you predicted {run.prediction:.6g}; measured {number(found.value)}: {near}"
    return "; ".join(part for part in (said, not_scored(run)) if part)
