"""The first call of each arm: what differs is told, what was returned is let go, what is left behind is refused."""

import gc
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.race_recorder import RaceRecorder
from tuilab.lab.device.devices import Cpu
from tuilab.lab.races.first_calls import Same, first_calls
from tuilab.lab.races.race import run_race
from tuilab.lab.races.switches import watch
from tuilab.record import events

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

pytest_plugins = ["tests.fakes.cuda"]


def called(
    arms: dict[str, Callable[[], Any]], same: Same = None, names: str = ""
) -> tuple[bool | None, str]:
    return first_calls(RaceRecorder(), arms, names.split() or list(arms), same, Cpu(), watch())


def test_the_first_in_their_order_that_differs_is_told_whoever_was_called_first() -> None:
    arms: dict[str, Callable[[], Any]] = {
        "c": lambda: 3.0,
        "b": lambda: 2.0,
        "a": lambda: 1.0,
        "like": lambda: 1.0,
    }

    assert called(arms, 0.1, "a like b c") == (False, "b does not compute what a does")
    assert called(arms, 5.0, "a like b c") == (True, "")
    assert called(arms, lambda a, b: a <= b, "a like b c") == (True, "")
    assert called(arms) == (None, "")


@pytest.mark.parametrize(
    ("first", "second", "same", "is_same"),
    [
        (100.0, 109.0, 0.1, True),
        (100.0, 112.0, 0.1, False),
        (0.0, 0.05, 0.1, True),
        (0.0, 0.2, 0.1, False),
    ],
)
def test_same_is_a_relative_and_an_absolute_tolerance(
    first: float, second: float, same: float, *, is_same: bool
) -> None:
    assert called({"a": lambda: first, "b": lambda: second}, same)[0] is is_same


@pytest.mark.parametrize("same", [None, 0.1])
def test_what_an_arm_returned_takes_no_memory_while_the_next_but_one_runs(same: Same) -> None:
    made: list[weakref.ref[torch.Tensor]] = []

    def arm() -> torch.Tensor:
        alive.append([ref() is not None for ref in made])
        made.append(weakref.ref(found := torch.ones(3)))
        return found

    alive: list[list[bool]] = []
    called({"a": arm, "b": arm, "c": arm}, same)

    assert alive == [[], [same is not None], [same is not None, False]]


@contextmanager
def as_before() -> Iterator[None]:
    cudnn: Any = torch.backends.cudnn
    before = cudnn.benchmark, torch.get_default_dtype()
    try:
        yield
    finally:
        cudnn.benchmark = before[0]
        torch.set_default_dtype(before[1])
        torch.set_grad_enabled(True)


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        (
            lambda: setattr(torch.backends.cudnn, "benchmark", True),
            "changed cudnn.benchmark from False to True",
        ),
        (
            lambda: torch.set_default_dtype(torch.float64),
            "changed the default dtype from torch.float32 to torch.float64",
        ),
        (
            lambda: torch.set_grad_enabled(False),
            "changed torch.set_grad_enabled from True to False",
        ),
    ],
)
def test_what_an_arm_leaves_for_the_others_is_refused(leave: Callable[[], Any], words: str) -> None:
    calls: list[str] = []
    with (
        as_before(),
        pytest.raises(
            ValueError,
            match=f"^the arm first {words}, and the other arms would run with that; set it",
        ),
    ):
        called({"first": leave, "second": lambda: calls.append("second")})

    assert not calls


def test_an_arm_that_leaves_another_gpu_the_current_one_is_refused(cuda: "FakeCuda") -> None:
    arms = {"a": lambda: torch.cuda.set_device(1), "b": lambda: None}
    with pytest.raises(ValueError, match=r"^the arm a changed the current GPU from 0 to 1, "):
        run_race(RaceRecorder(), arms, None, 0.1, 1, torch.device("cuda:0"), False)


def test_a_race_on_the_cpu_may_use_a_gpu_for_the_first_time(unused_cuda: "FakeCuda") -> None:
    def arm() -> None:
        unused_cuda.work(1_000)
        torch.cuda.synchronize()

    before = sorted(os.listdir("/proc/self/fd"))
    run_race(RaceRecorder(), {"a": arm, "b": arm}, None, 0.01, 1, torch.device("cpu"), False)

    assert (
        sorted(os.listdir("/proc/self/fd")) == before
    )  # a sweep has hundreds of races, a shell often 1024 files
    assert unused_cuda.initialised_by == "a kernel"


@pytest.mark.parametrize("late", [0, 1, 30])
def test_what_is_left_later_is_refused_too(late: int) -> None:
    """By what makes an arm, by the second call, or in the middle of the race."""
    calls = [0]

    def make() -> Callable[[], None]:
        leave(0)
        return lambda: leave(1)

    def leave(count: int) -> None:
        calls[0] += count
        if calls[0] >= late:
            torch.set_default_dtype(torch.float64)

    with (
        as_before(),
        pytest.raises(
            ValueError, match=r"changed the default dtype from torch.float32 to torch.float64"
        ),
    ):
        run_race(
            RaceRecorder(), {"a": lambda: list, "b": make}, None, 0.01, 1, torch.device("cpu"), True
        )


def test_an_arm_may_set_the_precision_of_products_back_as_torch_lets_it() -> None:
    """What was never set cannot be set back to that: it is as it is by itself."""
    matmul: Any = torch.backends.cuda.matmul
    before = matmul.fp32_precision

    def arm() -> None:
        torch.set_float32_matmul_precision("high")
        torch.set_float32_matmul_precision("highest")

    try:
        assert called({"a": arm, "b": arm}) == (None, "")
    finally:
        matmul.fp32_precision = torch.backends.mkldnn.matmul.fp32_precision = before  # type: ignore[attr-defined]


def test_an_arm_that_sets_what_it_needs_back_again_is_raced_and_the_switches_are_on_record() -> (
    None
):
    def double() -> torch.Tensor:
        with as_before():
            torch.set_default_dtype(torch.float64)
            return torch.ones(2)

    lab = RaceRecorder()
    run_race(
        lab,
        {"double": double, "single": lambda: torch.ones(2)},
        1e-6,
        0.01,
        1,
        torch.device("cpu"),
        False,
    )

    (recorded,) = lab.of(events.EnvironmentRecorded)
    assert recorded.part == "switches"
    assert recorded.facts["the default dtype"] == "torch.float32"
    assert recorded.facts["the current GPU"] == "none"
    assert recorded.facts["the precision of float32 convolutions"] == "tf32"
    assert recorded.facts["torch.set_flush_denormal"] == "False"


@pytest.mark.slow
def test_the_collector_of_garbage_has_only_what_the_arms_make_to_go_through() -> None:
    frozen: set[bool] = set()

    def arm() -> None:
        frozen.add(gc.get_freeze_count() > 10_000)

    run_race(RaceRecorder(), {"a": arm, "b": arm}, None, 0.01, 1, torch.device("cpu"), False)

    assert frozen == {True}
    assert gc.get_freeze_count() < 10_000
