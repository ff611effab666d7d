"""The same work against itself, many times.

What `tuilab calibrate` runs, in as many processes as fit the time: races between two arms that do not differ. Every verdict
that they do is false, and the known delay of the controls tells which differences would be seen.
"""

from typing import Any

import torch

from tuilab import Lab


def run(
    lab: Lab,
    races: int = 8,  # races in one process, 1..100
    seconds: float = 0.5,  # each takes so long, 0.1..60
) -> None:
    a = torch.randn(64, 64)

    def work() -> torch.Tensor:
        return (a @ a).relu().sum()

    for number in range(races):
        arms: dict[str, Any] = {f"left {number}": work, f"right {number}": work}
        race = lab.race(seconds=seconds, **arms)
        lab.log(lab.repeat * races + number, ratio=race.ratio(f"left {number}", f"right {number}"))
