"""The same work against itself, many times.

`tuilab calibrate` runs this scenario in as many processes as fit into its time. The two arms of a
race do the same, but each has memory of its own, so every verdict that they differ is false. The
known delay of the controls shows which differences would be detected. There are three kinds of
work, because processes differ by another amount where memory, the arithmetic of a core, or the
interpreter limits the speed; on a GPU these are its arithmetic, its memory, and the host that
launches kernels.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch

from tuilab import Lab

Work = Callable[[], object]
Kinds = list[tuple[str, Callable[[], Work]]]


def run(
    lab: Lab,
    races: int = 0,  # races in one process; 0 means 9 on a CPU and 3 on a GPU, 0..100
    seconds: float = 0.5,  # each takes so long, 0.1..60
    device: Literal["auto", "cpu", "cuda"] = "cpu",  # what is calibrated
) -> None:
    chosen = lab.device(device)
    if chosen.type == "cuda":
        kinds = on_gpu(chosen)
        races = races or 3
    else:
        kinds = KINDS
        races = races or 9
    for number in range(races):
        kind, make = kinds[number % len(kinds)]
        left = f"left {kind} {number}"
        right = f"right {kind} {number}"
        arms: dict[str, Any] = {left: make, right: make}
        race = lab.race(seconds=seconds, factories=True, device=chosen, **arms)
        lab.log(lab.repeat * races + number, ratio=race.ratio(left, right))


# Each call returns work with memory of its own, as two arms of a scenario have.


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


KINDS: Kinds = [("product", make_product), ("memory", make_sum), ("loop", make_loop)]


# The same for a GPU: limited by its arithmetic, its memory, and the host.


def on_gpu(device: torch.device) -> Kinds:
    def make_product() -> Work:
        a = torch.ones(4096, 4096, device=device)
        product = torch.empty_like(a)
        return lambda: torch.mm(a, a, out=product)

    def make_copy() -> Work:
        a = torch.ones(64 << 20, device=device)  # 256 MiB, more than any cache holds
        copy = torch.empty_like(a)
        return lambda: copy.copy_(a)

    def make_launches() -> Work:
        a = torch.zeros(10, device=device)

        def launches() -> None:
            for _ in range(100):
                a.add_(1)

        return launches

    return [("product", make_product), ("copy", make_copy), ("launches", make_launches)]
