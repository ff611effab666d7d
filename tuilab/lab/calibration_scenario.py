"""The same work against itself, many times.

What `tuilab calibrate` runs, in as many processes as fit the time: races between two arms that do not differ, but each has
memory of its own. Every verdict that they differ is false, and the known delay of the controls tells which differences would
be seen.
"""

from collections.abc import Callable
from typing import Any

import torch

from tuilab import Lab


def run(
    lab: Lab,
    races: int = 8,  # races in one process, 1..100
    seconds: float = 0.5,  # each takes so long, 0.1..60
) -> None:
    for number in range(races):
        arms: dict[str, Any] = {f"left {number}": make_work, f"right {number}": make_work}
        race = lab.race(seconds=seconds, factories=True, **arms)
        lab.log(lab.repeat * races + number, ratio=race.ratio(f"left {number}", f"right {number}"))


def make_work() -> Callable[[], torch.Tensor]:
    """Return the work, with memory of its own: two arms of a scenario have that, too."""
    a = torch.randn(64, 64)
    return lambda: (a @ a).relu().sum()
