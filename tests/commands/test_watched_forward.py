"""The forward is told where a library calls it in one place, as often as it is one of a training step and nothing else."""

import textwrap

import pytest

from tests.commands.seen import Watch
from tuilab.commands.inside._tuilab_watch import layout
from tuilab.commands.marks import Mark
from tuilab.commands.steps import Steps

MS = 1_000_000

STRATEGY = """
import types
class Strategy:
    def __init__(self, automatic): self.lightning_module = types.SimpleNamespace(automatic_optimization=automatic)
    def training_step(self, scale, *, of=1): return loss() * scale * of
module = sys.modules["lightning.pytorch.strategies.strategy"] = types.ModuleType("strategy")
module.Strategy = Strategy
o = sgd()
"""


def with_strategy(script: str) -> str:
    return STRATEGY + textwrap.dedent(script)


@pytest.mark.real_torch
def test_a_training_step_of_lightning_is_a_forward(watch: Watch) -> None:
    seen = watch(
        with_strategy("""
        from torch.utils.data import DataLoader
        for _ in DataLoader(range(3)): Strategy(True).training_step(1, of=2).backward(); o.step()
        """)
    )

    assert seen.kinds == "wait " + "wait forward back step " * 3 + "wait"
    assert all(0 < step.forward_ns < step.took_ns for step in seen.steps if step.took_ns)


def test_a_forward_within_a_closure_is_none_of_the_optimizer() -> None:
    """Of 10 ms the closure takes 8, of which the forward has 3 and the backward 4."""
    took = [(layout.WENT_FORWARD, 1, 4), (layout.WENT_BACK, 5, 9), (layout.STEPPED, 0, 10)]
    marks = [
        Mark((began + at) * MS, (ended + at) * MS, 0.0, 0, 1, 0, kind) for at in (0, 10, 20) for kind, began, ended in took
    ]

    *_, last = Steps().take(marks)
    parts = last.waited_ns, last.forward_ns, last.backward_ns, last.optimizer_ns, last.rest_ns
    assert parts == (0, 3 * MS, 4 * MS, 1 * MS, 2 * MS)


def test_on_a_gpu_a_forward_takes_what_it_takes_there() -> None:
    """A step is what lies between the ends on the GPU, which the host has launched long before; the closure's is the same."""
    on_gpu = [(layout.WENT_FORWARD, 30, 31), (layout.WENT_BACK, 40, 41), (layout.STEPPED, 5, 6)]
    marks = [
        Mark(at * 100 + place, at * 100 + place + 1, 0.0, 0, 1, 0, kind, gpu_ns=took, gpu_since_ns=since)
        for at in range(4)
        for place, (kind, took, since) in enumerate(on_gpu)
    ]

    *_, last = Steps().take(marks)
    parts = last.took_ns, last.forward_ns, last.backward_ns, last.optimizer_ns, last.rest_ns
    assert parts == (78, 30, 40, 5, 3)


@pytest.mark.real_torch
def test_what_goes_back_itself_and_what_learns_nothing_is_no_forward(watch: Watch) -> None:
    """Of a manual optimization a step has all in it; Trainer evaluates by the function that it trains by."""
    seen = watch(
        with_strategy("""
        for automatic in (False, True):
            for _ in range(2):
                loss().backward(); o.step()
                with torch.set_grad_enabled(not automatic): Strategy(automatic).training_step(1)
        """)
    )

    assert seen.kinds == "back step " * 3 + "back step"


@pytest.mark.real_torch
def test_a_forward_that_raises_raises_what_it_raised(watch: Watch) -> None:
    seen = watch(
        with_strategy("""
        for at in range(3):
            loss().backward(); o.step()
            try: Strategy(True).training_step()
            except TypeError as problem: print(problem)
        """)
    )

    assert seen.done.stdout == "Strategy.training_step() missing 1 required positional argument: 'scale'\n" * 3
    assert seen.kinds == "back step " * 2 + "back step"
