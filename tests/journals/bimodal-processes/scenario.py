"""Blocks with made-up times, recorded by a real run: what a box can do to a race.

`drift` slows everything by a tenth in the second half of each process, `outliers` makes every eighth block two to ten times as
long, `modes` moves the ratio of a whole process to 1.3 or 1.9.
"""

import random
from typing import Literal

from tuilab import Lab, events

ARMS = (("slow", "", 1.6), ("fast", "", 1.0), ("fast", "same", 1.0), ("fast", "delayed", 1.05))


def run(
    lab: Lab,
    box: Literal["drift", "outliers", "modes"] = "drift",  # what disturbs
) -> None:
    generator = random.Random(f"{box} {lab.repeat}")
    lab.claim("slow takes at least 1.5 times as long as fast", ratio="slow/fast", at_least=1.5)
    lab.record(
        events.RaceStarted(
            arms=["slow", "fast"], threads=1, device="cpu", loops={"slow": 1, "fast": 1}, base="fast", delay=0.05
        )
    )
    mode = generator.choice((1.3, 1.9)) / 1.6 if box == "modes" else 1.0
    for turn in range(8):
        order = ARMS if turn % 4 in (0, 3) else ARMS[::-1]
        for slot, (arm, control, length) in enumerate(order):
            length *= generator.gauss(1, 0.004) * (mode if arm == "slow" else 1)
            length *= 1.1 if box == "drift" and turn >= 4 else 1
            length *= generator.uniform(2, 10) if box == "outliers" and generator.random() < 1 / 8 else 1
            wall_ns = int(1e7 * length)
            block = events.BlockTimed(arm=arm, round=turn, slot=slot, loops=1, wall_ns=wall_ns, cpu_ns=wall_ns)
            block.control = control
            lab.record(block)
    lab.record(events.RaceFinished(arms=["slow", "fast"], is_same=True))
