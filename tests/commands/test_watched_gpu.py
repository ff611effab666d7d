"""What a GPU's steps are timed with costs a hundredth of all time at most; a step that was not timed has no parts."""

from __future__ import annotations

import itertools
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from tuilab.commands.inside._tuilab_watch import gpu as watched
from tuilab.commands.inside._tuilab_watch import layout
from tuilab.commands.marks import Mark, Process
from tuilab.commands.parts import curves_of, shares_of
from tuilab.commands.steps import Step, Steps
from tuilab.commands.story import story_of

MS = 1_000_000
SPELL = 20


class Cuda:
    """A GPU that does at once what it is told; an event takes as long as is said to be told, by a clock of its own."""

    def __init__(self, event_ns: int) -> None:
        self.now_ns, self.event_ns, self.recorded = 1, event_ns, 0

    def clock(self) -> int:
        self.now_ns += 1
        return self.now_ns

    def Event(self, enable_timing: bool) -> Any:  # torch's own name
        def record(stream: str) -> None:
            self.recorded += 1
            self.now_ns += self.event_ns
            event.at = self.now_ns

        event = SimpleNamespace(at=0, record=record, query=lambda: True)
        event.elapsed_time = lambda later: (later.at - event.at) / MS
        return event

    def is_initialized(self) -> bool:
        return True

    def is_current_stream_capturing(self) -> bool:
        return False

    def current_device(self) -> int:
        return 0

    def current_stream(self, device: int) -> str:
        return "the default one"

    def memory_stats_as_nested_dict(self, device: int) -> dict[str, Any]:
        return {}  # as before anything was allocated

    def get_device_properties(self, device: int) -> Any:
        return SimpleNamespace(uuid="a GPU")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Cuda:
    made = Cuda(request.param)
    monkeypatch.setitem(watched.sys.modules, "torch.cuda", made)  # type: ignore[attr-defined]
    monkeypatch.setattr(watched, "_now", made.clock)
    return made


def trained(cuda: Cuda, steps: int, step_ns: int) -> list[Mark]:
    """Return the marks of a training: each step a backward and an optimizer, as `backward.py` and `stepping.py` mark them."""
    marks: list[Mark] = []

    def mark(kind: int, began: int, ended: int, value: float = 0.0, number: int = 0, name: int = 0, flags: int = 0) -> None:
        marks.append(Mark(began, ended, value, number, name, flags, kind))

    watcher: Any = SimpleNamespace(mark=mark, name=lambda words: 1, fail=lambda problem: pytest.fail(repr(problem)))
    gpu = watched.Gpu(watcher, 0)
    for _ in range(steps):
        cuda.now_ns += step_ns
        for kind in (layout.WENT_BACK, layout.STEPPED):
            event, began = gpu.event(), cuda.now_ns
            cuda.now_ns += 1000
            ended = cuda.now_ns
            mark(kind, began, ended, flags=gpu.times(event, ended))
        gpu.stepped()
    return marks


def steps_of(marks: list[Mark]) -> list[Step]:
    steps = Steps()
    return steps.take(marks) + steps.finish()


@pytest.mark.parametrize("cuda", [50_000], indirect=True)
def test_events_take_a_hundredth_of_all_time_where_they_are_dear(cuda: Cuda) -> None:
    """Four of 50 us in a step of 5 ms would take 4 %."""
    trained(cuda, 2000, 5 * MS)

    share = cuda.recorded * cuda.event_ns / cuda.now_ns
    assert 0.008 < share <= 0.0105
    assert cuda.recorded % (4 * SPELL) == 0


@pytest.mark.parametrize("cuda", [5_000], indirect=True)
def test_each_step_is_timed_where_events_are_cheap(cuda: Cuda) -> None:
    marks = trained(cuda, 200, 5 * MS)

    assert cuda.recorded == 4 * 200
    assert {mark.flags for mark in marks if mark.kind in (layout.STEPPED, layout.WENT_BACK)} == {layout.TIMED}


@pytest.mark.parametrize("cuda", [50_000], indirect=True)
def test_a_step_that_was_not_timed_has_its_length_and_no_parts(cuda: Cuda) -> None:
    steps = steps_of(trained(cuda, 200, 5 * MS))

    spells = deque((is_on_gpu, len([*group])) for is_on_gpu, group in itertools.groupby(step.is_on_gpu for step in steps))
    assert spells.popleft() == (False, 1) and spells.popleft() == (True, SPELL - 1)  # the first has none before it
    assert {length for is_on_gpu, length in spells if is_on_gpu} <= {SPELL - 1, SPELL}
    untimed = [step for step in steps[1:] if step.is_untimed]
    assert len(untimed) > 50 and all(curves_of(step).keys() == {"step_ms"} for step in untimed)
    assert all(curves_of(step).keys() > {"step_ms", "backward_ms"} for step in steps if step.is_on_gpu)
    assert sum(shares_of(steps).values()) == pytest.approx(100)


@pytest.mark.parametrize("cuda", [50_000], indirect=True)
def test_the_story_is_of_the_steps_that_were_timed_and_says_of_how_many(cuda: Cuda) -> None:
    steps = Steps()
    found = steps.take(trained(cuda, 200, 5 * MS))
    told = " ".join(story_of(Process(1), steps, found))

    timed = sum(step.is_on_gpu for step in found)
    assert f"on the GPU, mean of {timed} of 199 steps" in told


def test_of_a_process_that_times_no_step_on_its_gpu_the_host_tells_how_long_they_take() -> None:
    marks = [Mark(at * 2 * MS, at * 2 * MS + MS, 0.0, 0, 1, layout.UNTIMED, layout.STEPPED) for at in range(10)]
    steps = Steps()
    told = " ".join(story_of(Process(1), steps, steps.take(marks)))

    assert "a step takes 2 ms, mean of 9 steps" in told and "%" not in told
