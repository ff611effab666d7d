"""Return the amount by which the arms of a command, its variants, are compared.

The amount is the time of a step, the peak memory, or the last value of a curve.
"""

import math
from typing import Literal, NamedTuple

from tuilab.commands.ab.step_time import StepCpu, cpu_of, most_steps, slowest, steady_of
from tuilab.commands.run_command import CommandEnd
from tuilab.text.display import join, plural

MEMORY = "memory"
_BILLIONTHS = 1e9  # in 1; an amount is recorded as a whole number of them
_MOST = 9e9  # a larger value, in billionths, does not fit into 64 bits


class ArmAmount(NamedTuple):
    """The measured amount of one process; `lacks` is the reason if there is none.

    A block, the record of one process in a comparison, has it as a whole number: nanoseconds of a
    step, bytes of memory, or billionths of the value of a curve.
    """

    amount: int = 1
    lacks: str = ""
    is_settled: bool = True
    cpu: StepCpu | None = None  # only if the amount is the time of a step


def name_of(measure: str) -> str:
    """Return the name of what is measured instead of the time of a step; empty for that time."""
    if not measure:
        return ""
    if measure == MEMORY:
        return "peak memory"
    return f"last {measure}"


def unit_of(measure: str) -> Literal["", "bytes"]:
    return "bytes" if measure == MEMORY else ""


def amount_of(measure: str, ended: CommandEnd) -> ArmAmount:
    """Return the amount of a process that has ended."""
    if measure == MEMORY:
        return ArmAmount(max(ended.peak_bytes, 1))
    if measure:
        return _last_value(measure, ended)
    return step_time(ended)


def step_time(ended: CommandEnd) -> ArmAmount:
    """Return the steady time of a step.

    If several processes step, return the time of the slowest one: the others wait for it.
    """
    lane = slowest(ended)
    if lane:
        steady_steps = steady_of(lane)
        if steady_steps:
            amount = max(round(steady_steps.step_s * _BILLIONTHS), 1)
            cpu = cpu_of(lane, steady_steps)
            return ArmAmount(amount, is_settled=steady_steps.is_settled, cpu=cpu)
    count = most_steps(ended)
    if count:
        return ArmAmount(lacks=f"{plural(count, 'step')} seen, which is too few to time a step")
    return ArmAmount(lacks=ended.watched.why_unseen())


def _last_value(curve: str, ended: CommandEnd) -> ArmAmount:
    """Return the last value of a curve, or why there is none or why it cannot be used.

    `curve` is its name, with or without the source in brackets that follows it.
    """
    last_values = ended.watched.last
    names = [name for name in last_values if curve in (name, name.rpartition(" (")[0])]
    if not names:
        curves = join(last_values) or "none"
        return ArmAmount(lacks=f"no curve is named {curve}; curves: {curves}")
    value = last_values[names[0]]
    if not (math.isfinite(value) and 1 / _BILLIONTHS <= value < _MOST):
        return ArmAmount(lacks=f"{curve} ended at {value:g}, but a ratio needs numbers above 0")
    return ArmAmount(round(value * _BILLIONTHS))
