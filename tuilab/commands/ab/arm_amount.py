"""What is held against each other of the arms of a command: the time of a step, the memory, or the last value of a curve."""

import math
from typing import Literal, NamedTuple

from tuilab.commands.ab.step_time import StepCpu, cpu_of, slowest, steady_of
from tuilab.commands.run_command import CommandEnd
from tuilab.text.display import join, plural

MEMORY = "memory"
_BILLIONTHS = 1e9
_MOST = 9e9  # a value that still has room in a record


class ArmAmount(NamedTuple):
    """One process's amount, as a block tells it: nanoseconds, bytes, or billionths; or why there is none."""

    amount: int = 1
    lacks: str = ""
    is_settled: bool = True
    cpu: StepCpu | None = None  # of a step, where that is the amount


def name_of(measure: str) -> str:
    """Return what is told instead of the time of a step; nothing where it is that."""
    return "peak memory" if measure == MEMORY else f"last {measure}" if measure else ""


def unit_of(measure: str) -> Literal["", "bytes"]:
    return "bytes" if measure == MEMORY else ""


def measured(measure: str, ended: CommandEnd) -> ArmAmount:
    """Return what was measured of a process that has ended."""
    if measure == MEMORY:
        return ArmAmount(max(ended.peak_bytes, 1))
    return _last(measure, ended) if measure else _step(ended)


def _step(ended: CommandEnd) -> ArmAmount:
    """Return the steady time of a step, of several processes that of the slowest: the others wait for it."""
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
    """Return the last value of a curve that is named, with or without where it comes from."""
    last = ended.watched.last
    names = [name for name in last if name == curve or name.rpartition(" (")[0] == curve]
    if not names:
        return ArmAmount(lacks=f"no curve is named {curve}; curves: {join(last) or 'none'}")
    value = last[names[0]]
    if not (math.isfinite(value) and 1 / _BILLIONTHS <= value < _MOST):
        return ArmAmount(lacks=f"{curve} ended at {value:g}, but a ratio needs numbers above 0")
    return ArmAmount(round(value * _BILLIONTHS))
