"""The same work against itself, many times.

What `tuilab calibrate` runs, in as many processes as fit the time: races between two arms that do not differ, but each has
memory of its own. Every verdict that they differ is false, and the known delay of the controls tells which differences would
be seen. The work is of three kinds, because the luck of a process is another one where memory, the arithmetic of a core or the
interpreter sets the pace.
"""

from collections.abc import Callable
from typing import Any

import torch

from tuilab import Lab

Work = Callable[[], object]


def run(
    lab: Lab,
    races: int = 9,  # races in one process, 1..100
    seconds: float = 0.5,  # each takes so long, 0.1..60
) -> None:
    for number in range(races):
        kind, make = KINDS[number % len(KINDS)]
        left, right = (f"{side} {kind} {number}" for side in ("left", "right"))
        arms: dict[str, Any] = {left: make, right: make}
        race = lab.race(seconds=seconds, factories=True, **arms)
        lab.log(lab.repeat * races + number, ratio=race.ratio(left, right))


# Each returns work with memory of its own: two arms of a scenario have that, too.


def make_product() -> Work:
    a = torch.randn(64, 64)
    return lambda: (a @ a).relu().sum()


def make_sum() -> Work:
    a, b = torch.randn(2, 500_000)
    total = torch.empty_like(a)
    return lambda: torch.add(a, b, out=total)


def make_loop() -> Work:
    numbers = [float(number) for number in range(2_000)]

    def loop() -> float:
        total = 0.0
        for number in numbers:
            total += number
        return total

    return loop


KINDS = (("product", make_product), ("memory", make_sum), ("loop", make_loop))
