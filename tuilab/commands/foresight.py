"""What a race of commands can see before it starts: how small a difference, and how long it takes."""

import math

from tuilab.engine.messages import RunOrder
from tuilab.judging import calibration_file, stats
from tuilab.judging.looks import PLANNED
from tuilab.judging.units import UNKNOWN_LUCK
from tuilab.text import plural
from tuilab.words import clock

_CONFIDENCE = 0.95
# How far off a process is by itself, of training scripts: the lab's own races, whose arms take turns in one process, see less.
_LUCK_OF_SCRIPTS = 0.1


def foresee(order: RunOrder) -> list[str]:
    """Return what is known before the first process starts."""
    assert order.command is not None
    processes = len(order.command.arms) + 1
    first = order.command.arms[0].name
    return [
        f"{plural(order.repeats, 'repeat')} of {processes} processes, {first} once more as its control: {_seen(order)}",
        f"it ends when the claims are decided, or after {clock(order.budget_s)}"
        if order.budget_s
        else _how_long(processes, order),
    ]


def _seen(order: RunOrder) -> str:
    """Return how small a difference would be seen four times in five."""
    luck = calibration_file.load().luck
    spread = max(luck or UNKNOWN_LUCK, _LUCK_OF_SCRIPTS)
    count = order.repeats if not order.looks else PLANNED[0]
    if count < 2:
        return "one repeat decides nothing"
    effect = stats.smallest_effect(count, spread * math.sqrt(2 / count), _CONFIDENCE)
    return f"that sees a difference of {100 * math.expm1(effect):.0f} % where a process is {100 * spread:.0f} % off by itself"


def _how_long(processes: int, order: RunOrder) -> str:
    return f"it takes {order.repeats * processes} times as long as the command"
