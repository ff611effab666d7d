"""The forward is told where a library calls it in one place, as often as it is one of a training step and nothing else."""

import textwrap

import pytest

from tests.commands.watched_script import Watch
from tuilab.commands.marks import Mark
from tuilab.commands.step_parts import parts_of
from tuilab.commands.steps import Steps
from tuilab.commands.watcher._tuilab_watch import layout

MS = 1_000_000
WAITS, FORWARD, BACK = layout.WAITED, layout.WENT_FORWARD, layout.WENT_BACK
STEP, LOGS = layout.STEPPED, layout.LOGGER_CALL

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
        Mark((began + at) * MS, (ended + at) * MS, 0.0, 0, 1, 0, kind)
        for at in (0, 10, 20)
        for kind, began, ended in took
    ]

    *_, last = Steps().take(marks)
    parts = last.waited_ns, last.forward_ns, last.backward_ns, last.optimizer_ns, last.rest_ns
    assert parts == (0, 3 * MS, 4 * MS, 1 * MS, 2 * MS)


def parts_of_last(took: list[tuple[int, int, int]]) -> dict[str, float]:
    """Return the parts of the last of three steps of 10 ms, in ms, whose marks began and ended at these times of it."""
    marks = [
        Mark((began + at) * MS, (ended + at) * MS, 0.0, 0, 1, 0, kind)
        for at in (0, 10, 20)
        for kind, began, ended in took
    ]
    *_, last = Steps().take(marks)
    return {part: ns / MS for part, ns in parts_of(last).items()}


@pytest.mark.parametrize(
    ("took", "data", "forward", "backward", "optimizer", "logging", "rest"),
    [
        ([(LOGS, 2, 4), (FORWARD, 1, 5), (BACK, 5, 8), (STEP, 9, 10)], 0, 2, 3, 1, 2, 2),
        (
            [(LOGS, 1, 2), (WAITS, 0, 3), (FORWARD, 3, 5), (BACK, 5, 8), (STEP, 9, 10)],
            2,
            2,
            3,
            1,
            1,
            1,
        ),
        (
            [(LOGS, 2, 3), (FORWARD, 1, 4), (BACK, 4, 8), (LOGS, 8, 9), (STEP, 0, 10)],
            0,
            2,
            4,
            1,
            2,
            1,
        ),
        ([(FORWARD, 1, 4), (LOGS, 6, 7), (BACK, 4, 8), (STEP, 9, 10)], 0, 3, 3, 1, 1, 2),
        ([(LOGS, 2, 3), (FORWARD, 1, 4), (STEP, 0, 10)], 0, 2, 0, 7, 1, 0),
    ],
    ids=[
        "in the forward",
        "in a dataset",
        "in a closure",
        "in the backward",
        "in a closure without a backward",
    ],
)
def test_logging_is_a_part_of_its_own_wherever_it_happens(
    took: list[tuple[int, int, int]],
    data: float,
    forward: float,
    backward: float,
    optimizer: float,
    logging: float,
    rest: float,
) -> None:
    parts = parts_of_last(took)

    assert parts == {
        "waits for data": data,
        "forward": forward,
        "backward": backward,
        "optimizer": optimizer,
        "logging": logging,
        "rest": rest,
    }


def test_logging_on_a_gpu_takes_what_the_gpu_does_not_work() -> None:
    """A logger of the host takes 50, while the GPU works 75 of 78: what is left of the step is 3."""
    on_gpu = [(layout.WENT_FORWARD, 30, 31), (layout.WENT_BACK, 40, 41), (layout.STEPPED, 5, 6)]
    marks = []
    for at in range(4):
        marks.append(Mark(at * 100, at * 100 + 50, 0.0, 0, 0, 0, LOGS))
        for place, (kind, took, since) in enumerate(on_gpu, 50):
            marks.append(
                Mark(
                    at * 100 + place,
                    at * 100 + place + 1,
                    0.0,
                    0,
                    1,
                    0,
                    kind,
                    gpu_ns=took,
                    gpu_since_ns=since,
                )
            )

    *_, last = Steps().take(marks)
    assert (last.took_ns, last.forward_ns, last.logging_ns, last.rest_ns) == (78, 30, 3, 0)


@pytest.mark.real_torch
def test_what_a_module_of_lightning_logs_is_none_of_its_forward(watch: Watch) -> None:
    seen = watch(
        with_strategy("""
        class LightningModule:
            def log(self, name, value): return name
            def log_dict(self, values): return [self.log(name, value) for name, value in values.items()]
        core = sys.modules["lightning.pytorch.core.module"] = types.ModuleType("core")
        core.LightningModule = LightningModule
        plain = Strategy.training_step
        def logging(self, scale):
            found = LightningModule().log("a", 1.0), LightningModule().log_dict({"a": 1.0, "b": 2.0})
            assert found == ("a", ["a", "b"])
            return plain(self, scale)
        Strategy.training_step = logging
        for _ in range(4): Strategy(True).training_step(1).backward(); o.step()
        """)
    )

    last = [mark for mark in seen.marks if mark.kind in (layout.LOGGER_CALL, layout.WENT_FORWARD)][
        -3:
    ]
    took = [mark.ended - mark.began for mark in last]
    assert [mark.kind for mark in last] == [
        layout.LOGGER_CALL,
        layout.LOGGER_CALL,
        layout.WENT_FORWARD,
    ]
    assert seen.steps[-1].logging_ns == took[0] + took[1]
    assert seen.steps[-1].forward_ns == took[2] - took[0] - took[1]


def test_on_a_gpu_a_forward_takes_what_it_takes_there() -> None:
    """A step is what lies between the ends on the GPU, which the host has launched long before; the closure's is the same."""
    on_gpu = [(layout.WENT_FORWARD, 30, 31), (layout.WENT_BACK, 40, 41), (layout.STEPPED, 5, 6)]
    marks = [
        Mark(
            at * 100 + place,
            at * 100 + place + 1,
            0.0,
            0,
            1,
            0,
            kind,
            gpu_ns=took,
            gpu_since_ns=since,
        )
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

    assert (
        seen.done.stdout
        == "Strategy.training_step() missing 1 required positional argument: 'scale'\n" * 3
    )
    assert seen.kinds == "back step " * 2 + "back step"
