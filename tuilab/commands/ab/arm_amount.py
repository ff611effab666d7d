"""Return the amount by which the arms of a command are compared.

The amount is the time of a step, the peak memory, or the last value of a curve.
"""

import math
from typing import Literal, NamedTuple

from tuilab.commands.ab.step_time import StepCpu, cpu_of, slowest, steady_of
from tuilab.commands.run_command import CommandEnd
from tuilab.text.display import join, plural

MEMORY = "memory"
_BILLIONTHS = 1e9
_MOST = 9e9  # a larger value, in billionths, does not fit into 64 bits


class ArmAmount(NamedTuple):
    """The measured amount of one process; `lacks` is the reason if there is none.

    A block records it as a whole number: nanoseconds of a step, bytes of memory, or billionths of
    the value of a curve.
    """

    amount: int = 1
    lacks: str = ""
    is_settled: bool = True
    cpu: StepCpu | None = None  # only if the amount is the time of a step


def name_of(measure: str) -> str:
    """Return the name of what is measured instead of the time of a step; empty for that time."""
    return "peak memory" if measure == MEMORY else f"last {measure}" if measure else ""


def unit_of(measure: str) -> Literal["", "bytes"]:
    return "bytes" if measure == MEMORY else ""


def measured(measure: str, ended: CommandEnd) -> ArmAmount:
    """Return the amount of a process that has ended."""
    if measure == MEMORY:
        return ArmAmount(max(ended.peak_bytes, 1))
    return _last(measure, ended) if measure else _step(ended)


def _step(ended: CommandEnd) -> ArmAmount:
    """Return the steady time of a step.

    If several processes step, return the time of the slowest one: the others wait for it.
    """
    lane = slowest(ended)
    if lane and (steady := steady_of(lane)):
        amount = max(round(steady.step_s * _BILLIONTHS), 1)
        return ArmAmount(amount, is_settled=steady.is_settled, cpu=cpu_of(lane, steady))
    count = max((lane.count for lane in ended.watched.lanes.values()), default=0)
    few = (
        f"{plural(count, 'step')} seen, which is too few to time a step"
        if count
        else ended.watched.why_unseen()
    )
    return ArmAmount(lacks=few)


def _last(curve: str, ended: CommandEnd) -> ArmAmount:
    """Return the last value of a curve.

    `curve` is its name, with or without the source in brackets that follows it.
    """
    last = ended.watched.last
    names = [name for name in last if name == curve or name.rpartition(" (")[0] == curve]
    if not names:
        return ArmAmount(lacks=f"no curve is named {curve}; curves: {join(last) or 'none'}")
    value = last[names[0]]
    if not (math.isfinite(value) and 1 / _BILLIONTHS <= value < _MOST):
        return ArmAmount(lacks=f"{curve} ended at {value:g}, but a ratio needs numbers above 0")
    return ArmAmount(round(value * _BILLIONTHS))
