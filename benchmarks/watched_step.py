"""What being watched costs a step in this process, as JSON; `watching.py` starts it.

python -m benchmarks.watched_step steps|all [--cuda] [--tiny]

On a GPU, too, it is the time of the host that is told: what a short step takes there is hardly anything else.
"""

import importlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.optim import optimizer as optimizers
from torch.utils.data import DataLoader, dataloader

from tuilab.commands import watcher
from tuilab.commands.marks import MarksFolder
from tuilab.commands.steps import Steps
from tuilab.commands.watcher._tuilab_watch import HOW, VARIABLE

FAST = 0.02  # of the blocks: those that nobody disturbed
HOOKS: tuple[dict[int, Any], ...] = (
    optimizers._global_optimizer_pre_hooks,
    optimizers._global_optimizer_post_hooks,
)


def main() -> None:
    torch.set_num_threads(1)
    device = torch.device("cuda" if "--cuda" in sys.argv else "cpu")
    is_there = device.type == "cpu" or torch.cuda.is_available()
    print(json.dumps(blocks(sys.argv[1], device, is_tiny="--tiny" in sys.argv) if is_there else {}))


def blocks(how: str, device: torch.device, *, is_tiny: bool) -> dict[str, dict[str, float]]:
    """Return what watching costs a short step and one of 1 ms."""
    few = 10 if is_tiny else 300
    step = trainer(device)
    out = hooks()
    found = {}
    with tempfile.TemporaryDirectory() as marks:
        let_in(how, marks)
        for _ in range(few if is_tiny else 1100):  # past the looks for what was loaded meanwhile
            step(0)
        states = {"out": out, "in": hooks()}
        product_us = (
            min(timed(step, 40, 1) for _ in range(50)) - min(timed(step, 0, 1) for _ in range(50))
        ) / 40
        for name, products, count in (
            ("short", 0, 5),
            ("1 ms", 1 if is_tiny else max(round(900 / product_us), 1), 1),
        ):
            times: dict[str, list[float]] = {"in": [], "out": []}
            for _ in range(4 if is_tiny else 2000):
                for state in random.sample(list(states), 2):
                    put(states[state])
                    step(products)  # the first after a change finds other things in the caches
                    times[state].append(timed(step, products, count))
            put(states["in"])
            for _ in range(few):
                step(products)
            bare_us = fast(times["out"])
            own_us = median(own_times_us(marks)[-few:])
            found[name] = {
                "bare_us": bare_us,
                "cost_us": fast(times["in"]) - bare_us,
                "own_us": own_us,
            }
    return found


def trainer(device: torch.device) -> Callable[[int], None]:
    """Return a step with a wait, a backward and an optimizer, and so many products of matrices of the host besides."""
    weight = torch.zeros(1, requires_grad=True, device=device)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    batches = iter(DataLoader(range(10**9), batch_size=None))  # type: ignore[arg-type]  # a sequence is a dataset
    matrix = torch.randn(64, 64)

    def step(products: int) -> None:
        next(batches)
        for _ in range(products):
            matrix @ matrix
        (weight * weight).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()

    return step


def timed(step: Callable[[int], None], products: int, count: int) -> float:
    """Return the microseconds of one of so many steps; a GPU begins with nothing to do, and is waited for."""
    wait = torch.cuda.synchronize if torch.cuda.is_initialized() else bool  # type: ignore[no-untyped-call]
    wait()
    began = time.perf_counter()
    for _ in range(count):
        step(products)
    wait()
    return (time.perf_counter() - began) / count * 1e6


def fast(times: list[float]) -> float:
    return sorted(times)[int(FAST * len(times))]


def let_in(how: str, marks: str) -> None:
    """Let the watcher in, as the end of `import torch` does."""
    os.environ |= {VARIABLE: marks, HOW: how}
    sys.path.insert(0, os.path.dirname(watcher.__file__ or ""))
    importlib.import_module("_tuilab_watch").begin()


def hooks() -> tuple[Any, ...]:
    """Return what stands in the places that the watcher stands in."""
    return (
        *(dict(held) for held in HOOKS),
        torch.autograd.backward,
        dataloader._BaseDataLoaderIter.__next__,
    )


def put(found: tuple[Any, ...]) -> None:
    for place, held in zip(HOOKS, found, strict=False):
        place.clear()
        place.update(held)
    torch.autograd.backward, dataloader._BaseDataLoaderIter.__next__ = found[2:]  # type: ignore[method-assign]


def own_times_us(marks: str) -> list[float]:
    """Return what the steps tell of it themselves."""
    seen = Steps()
    ended = [
        step for _, news in MarksFolder(Path(marks)).read(is_last=True) for step in seen.take(news)
    ] + seen.finish()
    return [step.watched_ns / 1e3 for step in ended]


if __name__ == "__main__":
    main()
