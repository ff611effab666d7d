"""The forward is told where a library calls it in one place, as often as it is one of a training step and nothing else."""

import textwrap

import pytest

from tests.commands.made_marks import MS, make_gpu_mark, make_mark, repeat_step
from tests.commands.watched_script import Watch
from tuilab.commands.marks import Mark
from tuilab.commands.step_parts import parts_of
from tuilab.commands.steps import Steps
from tuilab.commands.watcher._tuilab_watch import layout

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
    marks = repeat_step([(FORWARD, 1, 4), (BACK, 5, 9), (STEP, 0, 10)])

    *_, last = Steps().take(marks)
    parts = last.waited_ns, last.forward_ns, last.backward_ns, last.optimizer_ns, last.rest_ns
    assert parts == (0, 3 * MS, 4 * MS, 1 * MS, 2 * MS)


PART_NAMES = ("waits for data", "forward", "backward", "optimizer", "logging", "rest")


@pytest.mark.parametrize(
    ("marked", "parts_ms"),  # the parts are in the order of PART_NAMES
    [
        pytest.param(
            [(LOGS, 2, 4), (FORWARD, 1, 5), (BACK, 5, 8), (STEP, 9, 10)],
            (0, 2, 3, 1, 2, 2),
            id="in the forward",
        ),
        pytest.param(
            [(LOGS, 1, 2), (WAITS, 0, 3), (FORWARD, 3, 5), (BACK, 5, 8), (STEP, 9, 10)],
            (2, 2, 3, 1, 1, 1),
            id="in a dataset",
        ),
        pytest.param(
            [(LOGS, 2, 3), (FORWARD, 1, 4), (BACK, 4, 8), (LOGS, 8, 9), (STEP, 0, 10)],
            (0, 2, 4, 1, 2, 1),
            id="in a closure",
        ),
        pytest.param(
            [(FORWARD, 1, 4), (LOGS, 6, 7), (BACK, 4, 8), (STEP, 9, 10)],
            (0, 3, 3, 1, 1, 2),
            id="in the backward",
        ),
        pytest.param(
            [(LOGS, 2, 3), (FORWARD, 1, 4), (STEP, 0, 10)],
            (0, 2, 0, 7, 1, 0),
            id="in a closure without a backward",
        ),
    ],
)
def test_logging_is_a_part_of_its_own_wherever_it_happens(
    marked: list[tuple[int, int, int]], parts_ms: tuple[int, ...]
) -> None:
    *_, last = Steps().take(repeat_step(marked))

    measured_ms = {name: part_ns / MS for name, part_ns in parts_of(last).items()}
    assert measured_ms == dict(zip(PART_NAMES, parts_ms, strict=True))


def marks_on_gpu(at_ms: int) -> list[Mark]:
    """Return the marks of a step, which the host has launched long before the GPU computes it."""
    return [
        make_gpu_mark(FORWARD, at_ms, at_ms + 1, gpu_ms=30, since_ms=31),
        make_gpu_mark(BACK, at_ms + 1, at_ms + 2, gpu_ms=40, since_ms=41),
        make_gpu_mark(STEP, at_ms + 2, at_ms + 3, gpu_ms=5, since_ms=6),
    ]


def test_logging_on_a_gpu_takes_what_the_gpu_does_not_work() -> None:
    """The GPU works 75 of 78 ms. So the logger of the host, which takes 50 ms, has the other 3."""
    marks = []
    for at_ms in (0, 100, 200, 300):
        marks.append(make_mark(LOGS, at_ms, at_ms + 50))
        marks += marks_on_gpu(at_ms + 50)

    *_, last = Steps().take(marks)
    parts = last.took_ns, last.forward_ns, last.logging_ns, last.rest_ns
    assert parts == (78 * MS, 30 * MS, 3 * MS, 0)


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

    last = [mark for mark in seen.marks if mark.kind in (LOGS, FORWARD)][-3:]
    took = [mark.ended - mark.began for mark in last]
    assert [mark.kind for mark in last] == [LOGS, LOGS, FORWARD]
    assert seen.steps[-1].logging_ns == took[0] + took[1]
    assert seen.steps[-1].forward_ns == took[2] - took[0] - took[1]


def test_on_a_gpu_a_forward_takes_what_it_takes_there() -> None:
    """A step lies between the ends of its work on the GPU, not between its launches."""
    marks = []
    for at_ms in (0, 100, 200, 300):
        marks += marks_on_gpu(at_ms)

    *_, last = Steps().take(marks)
    parts = last.took_ns, last.forward_ns, last.backward_ns, last.optimizer_ns, last.rest_ns
    assert parts == (78 * MS, 30 * MS, 40 * MS, 5 * MS, 3 * MS)


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
