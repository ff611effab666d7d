"""Measure what watching costs a step in this process, which `watching.py` starts; print JSON.

    python -m benchmarks.watched_step steps|all [--cuda] [--tiny]

The times are those of the host, also on a GPU: a short step takes hardly anything else there.
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
from typing import Any, NamedTuple

import torch
from torch.optim import optimizer as optimizers
from torch.utils.data import DataLoader, dataloader

from tuilab.commands import watcher
from tuilab.commands.marks import MarksFolder
from tuilab.commands.steps import Steps
from tuilab.commands.watcher._tuilab_watch import HOW, VARIABLE

FAST_SHARE = 0.02  # of the blocks of steps: so many were not disturbed
TrainingStep = Callable[[int], None]  # takes the number of matrix products on the host


class TorchHooks(NamedTuple):
    """The hooks and functions of torch in the four places where the watcher puts its own."""

    before_step: dict[int, Any]
    after_step: dict[int, Any]
    backward: Callable[..., Any]
    next_batch: Callable[..., Any]


def main() -> None:
    torch.set_num_threads(1)
    device = torch.device("cuda" if "--cuda" in sys.argv else "cpu")
    costs = {}
    if device.type == "cpu" or torch.cuda.is_available():
        costs = measure_costs(sys.argv[1], device, is_tiny="--tiny" in sys.argv)
    print(json.dumps(costs))


def measure_costs(how: str, device: torch.device, *, is_tiny: bool) -> dict[str, dict[str, float]]:
    """Return the microseconds of watching, for a short step and for a step of 1 ms.

    Blocks of steps with the hooks and without them take turns, in an order that is drawn.
    """
    first_steps = 1100  # after 1,000 steps, the watcher hooks into loaded libraries no more
    rounds = 2000
    own_clock_steps = 300
    if is_tiny:
        first_steps = 10
        rounds = 4
        own_clock_steps = 10
    step = make_step(device)
    unwatched = read_hooks()
    costs = {}
    with tempfile.TemporaryDirectory() as marks:
        start_watcher(how, marks)
        for _ in range(first_steps):
            step(0)
        watched = read_hooks()
        products_of_1_ms = 1
        if not is_tiny:
            products_of_1_ms = count_products(step)
        for name, products, count in (("short", 0, 5), ("1 ms", products_of_1_ms, 1)):
            times_us: dict[bool, list[float]] = {True: [], False: []}
            for _ in range(rounds):
                for is_watched in random.sample([False, True], 2):
                    put_hooks(watched if is_watched else unwatched)
                    step(products)  # not timed: the first step after a change finds cold caches
                    times_us[is_watched].append(time_step(step, products, count))
            put_hooks(watched)
            for _ in range(own_clock_steps):
                step(products)
            bare_us = fast_time(times_us[False])
            own_us = median(own_times_us(marks)[-own_clock_steps:])
            costs[name] = {
                "bare_us": bare_us,
                "cost_us": fast_time(times_us[True]) - bare_us,
                "own_us": own_us,
            }
    return costs


def make_step(device: torch.device) -> TrainingStep:
    """Return a step with a batch, a backward and an optimizer, and products on the host."""
    weight = torch.zeros(1, requires_grad=True, device=device)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    # A sequence is a dataset as well.
    batches = iter(DataLoader(range(10**9), batch_size=None))  # type: ignore[arg-type]
    matrix = torch.randn(64, 64)

    def step(products: int) -> None:
        next(batches)
        for _ in range(products):
            matrix @ matrix
        (weight * weight).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()

    return step


def count_products(step: TrainingStep) -> int:
    """Return how many products make a step take about 1 ms."""
    with_products_us = min(time_step(step, 40, 1) for _ in range(50))
    without_us = min(time_step(step, 0, 1) for _ in range(50))
    product_us = (with_products_us - without_us) / 40
    return max(round(900 / product_us), 1)


def time_step(step: TrainingStep, products: int, count: int) -> float:
    """Return the microseconds of a step, from `count` steps; a GPU is idle before and after."""
    wait: Callable[[], object] = bool  # does nothing
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        wait = torch.cuda.synchronize
    wait()
    began = time.perf_counter()
    for _ in range(count):
        step(products)
    wait()
    return (time.perf_counter() - began) / count * 1e6


def fast_time(times_us: list[float]) -> float:
    """Return the slowest of the fast times: a busy machine only ever adds time."""
    return sorted(times_us)[int(FAST_SHARE * len(times_us))]


def start_watcher(how: str, marks: str) -> None:
    """Start the watcher, as the end of `import torch` does."""
    os.environ[VARIABLE] = marks
    os.environ[HOW] = how
    sys.path.insert(0, os.path.dirname(watcher.__file__ or ""))
    importlib.import_module("_tuilab_watch").begin()


def read_hooks() -> TorchHooks:
    """Return what torch has in these four places now."""
    return TorchHooks(
        before_step=dict(optimizers._global_optimizer_pre_hooks),
        after_step=dict(optimizers._global_optimizer_post_hooks),
        backward=torch.autograd.backward,
        next_batch=dataloader._BaseDataLoaderIter.__next__,
    )


def put_hooks(hooks: TorchHooks) -> None:
    """Put hooks and functions back into the four places."""
    before_step: dict[int, Any] = optimizers._global_optimizer_pre_hooks
    before_step.clear()
    before_step.update(hooks.before_step)
    after_step: dict[int, Any] = optimizers._global_optimizer_post_hooks
    after_step.clear()
    after_step.update(hooks.after_step)
    torch.autograd.backward = hooks.backward
    dataloader._BaseDataLoaderIter.__next__ = hooks.next_batch  # type: ignore[method-assign]


def own_times_us(folder: str) -> list[float]:
    """Return what watching took in each step, by the clock of the watcher."""
    steps = Steps()
    ended = []
    for _, marks in MarksFolder(Path(folder)).read(is_last=True):
        ended.extend(steps.take(marks))
    ended.extend(steps.finish())
    return [step.watched_ns / 1e3 for step in ended]


if __name__ == "__main__":
    main()
