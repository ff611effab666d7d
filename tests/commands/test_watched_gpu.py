"""What the watcher asks of a GPU: one event for each step, parts of a few steps, and numbers in bundles."""

import itertools
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tuilab.commands.marks import Mark
from tuilab.commands.steps import Step, Steps
from tuilab.commands.watcher._tuilab_watch import data, gpu_numbers, layout
from tuilab.commands.watcher._tuilab_watch import gpu as watched
from tuilab.commands.watcher._tuilab_watch.part_sampling import PartSampling

MS = 1_000_000
DEVICE = None  # the index of the device of a tensor on the CPU, which stands for one on the GPU


class Cuda:
    """A GPU that has done at once what it is told, with a count of the calls of its driver."""

    def __init__(self) -> None:
        self.at_ms = 0.0
        self.is_behind = False  # no event has come
        self.streams: set[int] = set()
        self.calls: Counter[str] = Counter()
        self.memory_readings = 0

    def Event(self, enable_timing: bool) -> Any:
        def record(stream: Any) -> None:
            self.calls["record"] += 1
            self.streams.add(stream.cuda_stream)
            event.at = self.at_ms

        def query() -> bool:
            self.calls["query"] += 1
            return not self.is_behind

        def elapsed_time(later: Any) -> float:
            self.calls["elapsed_time"] += 1
            return float(later.at - event.at)

        event = SimpleNamespace(at=0.0, record=record, query=query, elapsed_time=elapsed_time)
        return event

    def is_initialized(self) -> bool:
        return True

    def is_current_stream_capturing(self) -> bool:
        return False

    def current_device(self) -> int | None:
        return DEVICE

    def current_stream(self, device: int | None) -> Any:
        return SimpleNamespace(cuda_stream=7)

    def stream(self, stream: Any) -> Any:
        return nullcontext()

    def memory_stats_as_nested_dict(self, device: int | None) -> dict[str, Any]:
        self.memory_readings += 1
        return {
            f"{name}_bytes": {"all": {"current": at, "peak": 10 * at}}
            for at, name in enumerate(("allocated", "reserved"), 1)
        }

    def get_device_properties(self, device: int | None) -> Any:
        return SimpleNamespace(uuid="a GPU")


class Training:
    """A training whose marks are kept: a step is a backward of 3 ms, an optimizer of 1, and 2 between them."""

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.marks: list[Mark] = []
        self.count = 0  # of marks of work so far
        self.gpu = watched.GpuMarks(self._make_watcher(), DEVICE)  # type: ignore[arg-type]

    def _make_watcher(self) -> Any:
        def mark(
            kind: int,
            began: int,
            ended: int,
            value: float = 0.0,
            number: int = 0,
            name: int = 0,
            flags: int = 0,
        ) -> None:
            self.marks.append(Mark(began, ended, value, number, name, flags, kind))

        def stack(tensors: list[torch.Tensor]) -> torch.Tensor:
            self.cuda.calls["stack"] += 1
            self.cuda.calls["copy"] += 1  # what is stacked is then copied to the host
            return torch.stack(tensors)

        def empty(*shape: Any, pin_memory: bool = False, **more: Any) -> torch.Tensor:
            return torch.empty(*shape, **more)

        stand_in = SimpleNamespace(_C=SimpleNamespace(), stack=stack, empty=empty)
        return SimpleNamespace(
            mark=mark,
            name=lambda words: 1,
            fail=lambda problem: pytest.fail(repr(problem)),
            torch=stand_in,
            is_all=True,
        )

    def _next_end(self) -> int:
        self.count += 1
        return 10 * self.count * MS

    def go_back(self, root: torch.Tensor | None = None) -> None:
        self.cuda.at_ms += 1
        began = self.gpu.begin_backward()
        self.cuda.at_ms += 3
        ended = self._next_end()
        flags = layout.TIMED if self.gpu.end_part(began, ended) else 0
        if root is not None:
            flags |= self.gpu.mark_value_later(root, ended)
        self.marks.append(Mark(ended - MS, ended, 0.0, 0, 0, flags, layout.WENT_BACK))

    def step_optimizer(self, name: int = 1, *, is_within_backward: bool = False) -> None:
        self.cuda.at_ms += 1
        began = self.gpu.begin_part()
        self.cuda.at_ms += 1
        ended = self._next_end()
        is_timed = self.gpu.end_step(began, ended, is_within_backward=is_within_backward)
        flags = layout.TIMED if is_timed else 0
        if is_within_backward:
            flags |= layout.WITHIN
        self.marks.append(Mark(ended - MS, ended, 0.0, 0, name, flags, layout.STEPPED))
        self.gpu.mark_landed()

    def train(self, count: int, root: Callable[[int], torch.Tensor] | None = None) -> None:
        for number in range(count):
            self.go_back(root(number) if root else None)
            self.step_optimizer()

    def steps(self) -> list[Step]:
        """Return the steps as tuilab finds them, the first of which has no length."""
        self.gpu.finish()
        steps = Steps()
        return steps.take(self.marks) + steps.finish()


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    made = Cuda()
    monkeypatch.setitem(watched.sys.modules, "torch.cuda", made)  # type: ignore[attr-defined]
    monkeypatch.setattr(gpu_numbers, "_GRAPHS_OF_COMPILED", "no such module")
    return made


@pytest.fixture
def training(cuda: Cuda) -> Training:
    return Training(cuda)


def loss(number: int) -> torch.Tensor:
    return torch.tensor(float(number))


def values(steps: list[Step]) -> list[float]:
    return [sum(step.roots.values()) for step in steps if step.roots]


# ---- times


def test_steps_are_what_the_gpu_took(training: Training, cuda: Cuda) -> None:
    training.train(10)

    found = [(step.took_ns, step.backward_ns, step.optimizer_ns) for step in training.steps()[1:]]
    assert found == [(6 * MS, 3 * MS, MS)] * 9
    assert cuda.streams == {7}


def test_length_of_every_step_is_measured_and_parts_of_a_few(training: Training) -> None:
    training.train(1000)

    steps = training.steps()[1:]
    with_parts = [step for step in steps if step.has_parts]
    assert {step.took_ns for step in steps} == {6 * MS}
    assert {(step.backward_ns, step.optimizer_ns) for step in with_parts} == {(3 * MS, MS)}
    assert 200 <= len(with_parts) <= 270


def test_step_costs_at_most_three_calls_of_the_driver(training: Training, cuda: Cuda) -> None:
    training.train(300, loss)
    cuda.calls.clear()
    training.train(272 * 4, loss)

    assert sum(cuda.calls.values()) <= 3 * 272 * 4, cuda.calls


def test_rounds_of_two_optimizers_have_their_parts_in_the_same_steps(training: Training) -> None:
    for _ in range(400):
        for name in (1, 2):
            training.go_back()
            training.step_optimizer(name)

    steps = training.steps()[1:]
    with_parts = [step for step in steps if step.has_parts]
    assert {(step.took_ns, step.optimized) for step in steps} == {(12 * MS, 2)}
    assert {(step.backward_ns, step.optimizer_ns) for step in with_parts} == {(6 * MS, 2 * MS)}
    assert 100 <= len(with_parts) < 200


def test_step_that_a_backward_ends_has_its_length(training: Training) -> None:
    for _ in range(300):
        training.step_optimizer(is_within_backward=True)
        training.go_back()

    steps = training.steps()[1:]
    assert {step.took_ns for step in steps} == {6 * MS}


def test_time_before_a_step_that_was_not_timed_is_unknown(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the step has the length that the host measured: 20 ms between two of its marks."""
    training.train(4)
    with monkeypatch.context() as patch:
        patch.setattr(training.cuda, "is_current_stream_capturing", lambda: True)
        training.train(1)
    training.train(4)

    lengths = [step.took_ns for step in training.steps()[1:]]
    assert lengths == [6 * MS] * 3 + [20 * MS] * 2 + [6 * MS] * 3


def test_sampling_waits_for_a_backward_where_there_are_any() -> None:
    sampling = PartSampling(are_parts_watched=True)
    switched = []
    for _ in range(250):
        sampling.begin_backward()
        for _ in range(3):
            sampling.end_optimizer_step()
        switched.append(sampling.is_on)

    assert switched == [True] * 199 + [False] * 51


def test_parts_are_never_timed_where_only_steps_are_watched() -> None:
    sampling = PartSampling(are_parts_watched=False)
    sampling.end_optimizer_step()

    assert not sampling.is_on


# ---- numbers


def test_every_root_comes_and_the_last_ones_at_the_end(training: Training) -> None:
    training.train(70, loss)
    landed = [mark for mark in training.marks if mark.kind == layout.LANDED]

    assert len(landed) >= 70 - 32 - 32  # those of the last copy may not have landed yet
    assert values(training.steps()) == [float(number) for number in range(70)]


def test_root_that_was_overwritten_is_unknown_and_later_ones_are_right(training: Training) -> None:
    def overwritten(number: int) -> torch.Tensor:
        root = loss(number)
        roots.append(root)
        return root

    roots: list[torch.Tensor] = []
    for _ in range(40):
        training.train(1, lambda _: overwritten(len(roots)))
        roots[-1].zero_()

    assert values(training.steps()) == [float(number) for number in range(1, 40)]


def test_root_of_a_cuda_graph_is_copied_before_the_graph_runs_again(training: Training) -> None:
    """A graph writes to one place, and torch does not count that as a change."""
    place = torch.zeros(())
    for number in range(40):
        place.data.fill_(number)  # does not change the version of the tensor
        training.train(1, lambda _: place)

    assert values(training.steps()) == [float(number) for number in range(1, 40)]


def test_root_that_ranks_add_up_has_the_value_that_went_backward(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    for number in range(40):
        root = loss(number)
        training.train(1, lambda _, root=root: root)  # type: ignore[misc]
        root.data.mul_(8)  # as a collective does: the version stays

    assert values(training.steps()) == [float(number) for number in range(40)]


def test_logged_number_is_what_it_was_when_it_was_logged(training: Training) -> None:
    logged: list[float] = []
    total = torch.zeros(())
    for number in range(40):
        total += number
        training.gpu.copy(total, logged.append)
    training.gpu.finish()

    assert logged == [float(number * (number + 1) // 2) for number in range(40)]


def test_numbers_of_a_gpu_that_is_far_behind_are_left_out(training: Training, cuda: Cuda) -> None:
    cuda.is_behind = True
    training.train(2000, loss)
    are_late = [bool(mark.flags & layout.LATE) for mark in training.marks]
    cuda.is_behind = False

    assert sum(are_late) == 16 * 32
    assert len(values(training.steps())) == sum(are_late)


def test_batches_of_an_evaluation_bring_the_last_roots(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No step is made there, so only the waits for data can ask for what has landed."""
    training.train(3, loss)
    landed_before = sum(mark.kind == layout.LANDED for mark in training.marks)

    class Loop:
        _tuilab_loop = 0  # as in the class of torch

        def fetch(self) -> None:
            """Return no batch; a watched loop calls it through its wrapper."""

    watcher: Any = SimpleNamespace(
        torch=torch,
        gpu=training.gpu,
        threads=set(),
        spent_ns=0,
        put=lambda *mark: None,
    )
    fetch = data.Waits(watcher).timed_next(Loop.fetch)
    times_ns = itertools.count(time.monotonic_ns() + 10**9, 2 * 10**9)
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(times_ns))
    for _ in range(3):
        fetch(Loop())

    landed = sum(mark.kind == layout.LANDED for mark in training.marks)
    assert (landed_before, landed) == (0, 3)


# ---- memory


def test_what_torch_holds_is_asked_at_once_with_its_peak_and_not_with_each_step(
    training: Training, cuda: Cuda
) -> None:
    training.train(200)
    held = [mark for mark in training.marks if mark.kind == layout.HELD]

    assert {(mark.began, mark.ended, mark.value) for mark in held} == {(1, 2, 10.0)}
    assert 1 <= cuda.memory_readings == len(held) < 50


def test_of_a_gpu_that_has_allocated_nothing_nothing_is_held(
    training: Training, cuda: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "memory_stats_as_nested_dict", lambda device: {})
    training.gpu.mark_landed()

    (held,) = training.marks
    assert (held.kind, held.began, held.ended, held.value) == (layout.HELD, 0, 0, 0.0)
