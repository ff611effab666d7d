"""What the watcher asks of a GPU: events that are told their stream, and what torch holds, in one question."""

from types import SimpleNamespace
from typing import Any

import pytest

from tuilab.commands.marks import Mark
from tuilab.commands.steps import Steps
from tuilab.commands.watcher._tuilab_watch import gpu as watched
from tuilab.commands.watcher._tuilab_watch import layout

MS = 1_000_000
STEPS = 10


class Cuda:
    """A GPU that has done at once what it is told: a backward takes it 3 ms, an optimizer 1, and what is between them 2."""

    def __init__(self) -> None:
        self.at_ms, self.streams, self.asked = 0.0, set[str](), 0

    def Event(self, enable_timing: bool) -> Any:
        def record(stream: str) -> None:
            self.streams.add(stream)
            event.at = self.at_ms

        event = SimpleNamespace(at=0.0, record=record, query=lambda: True)
        event.elapsed_time = lambda later: later.at - event.at
        return event

    def is_initialized(self) -> bool:
        return True

    def is_current_stream_capturing(self) -> bool:
        return False

    def current_device(self) -> int:
        return 0

    def current_stream(self, device: int) -> str:
        return f"the stream of {device}"

    def memory_stats_as_nested_dict(self, device: int) -> dict[str, Any]:
        self.asked += 1
        return {
            f"{name}_bytes": {"all": {"current": at, "peak": 10 * at}}
            for at, name in enumerate(("allocated", "reserved"), 1)
        }

    def get_device_properties(self, device: int) -> Any:
        return SimpleNamespace(uuid="a GPU")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    made = Cuda()
    monkeypatch.setitem(watched.sys.modules, "torch.cuda", made)  # type: ignore[attr-defined]
    return made


@pytest.fixture
def marks(cuda: Cuda) -> list[Mark]:
    """The marks of a training, each step of which is a backward and an optimizer."""
    found: list[Mark] = []

    def mark(
        kind: int,
        began: int,
        ended: int,
        value: float = 0.0,
        number: int = 0,
        name: int = 0,
        flags: int = 0,
    ) -> None:
        found.append(Mark(began, ended, value, number, name, flags, kind))

    watcher: Any = SimpleNamespace(
        mark=mark, name=lambda words: 1, fail=lambda problem: pytest.fail(repr(problem))
    )
    gpu = watched.GpuMarks(watcher, 0)
    for step in range(STEPS):
        for place, (kind, took_ms) in enumerate(((layout.WENT_BACK, 3), (layout.STEPPED, 1))):
            cuda.at_ms += 1
            event, ended = gpu.record_event(), (100 * step + 10 * place + 1) * MS
            cuda.at_ms += took_ms
            mark(kind, ended - MS, ended, flags=layout.TIMED if gpu.time_since(event, ended) else 0)
        gpu.mark_landed()
    return found


def test_steps_are_what_the_gpu_took(marks: list[Mark], cuda: Cuda) -> None:
    steps = Steps()
    found = steps.take(marks) + steps.finish()

    assert [(step.took_ns, step.backward_ns, step.optimizer_ns) for step in found[1:]] == [
        (6 * MS, 3 * MS, MS)
    ] * (STEPS - 1)
    assert cuda.streams == {"the stream of 0"}


def test_what_torch_holds_is_asked_at_once_with_its_peak_and_not_with_each_step(
    marks: list[Mark], cuda: Cuda
) -> None:
    (held,) = [mark for mark in marks if mark.kind == layout.HELD]

    assert (held.began, held.ended, held.value) == (1, 2, 10.0)
    assert cuda.asked == 1


def test_of_a_gpu_that_has_allocated_nothing_nothing_is_held(
    cuda: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(cuda, "memory_stats_as_nested_dict", lambda device: {})
    watcher: Any = SimpleNamespace(
        mark=lambda *given: found.append(given), name=lambda words: 1, fail=pytest.fail
    )
    watched.GpuMarks(watcher, 0).mark_landed()

    assert found == [(layout.HELD, 0, 0, 0.0, 0, 1)]
