"""Scalars that are logged from a GPU: none is waited for, none is another one, and none is lost without a word."""

import itertools
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.conftest import CHECKOUT
from tests.engine import read_stream
from tuilab import Lab
from tuilab.engine import messages
from tuilab.engine.messages import WorkerOrder
from tuilab.engine.spawn import socket_pair
from tuilab.record import events, held_back_records
from tuilab.record.events import Logged
from tuilab.record.journal.lines import Corrupt, Gap
from tuilab.record.journal.writer import Writer
from tuilab.record.series import Series, add_logged

if TYPE_CHECKING:
    from tests.fakes.late_cuda import LateCuda

pytest_plugins = ["tests.fakes.late_cuda"]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Writer]:
    (tmp_path / "scenario.py").write_text('"""A lesson."""\n')
    with closing(Writer(tmp_path / "worker-0.jsonl")) as writer:
        yield writer


@pytest.fixture
def lab(journal: Writer, tmp_path: Path) -> Iterator[Lab]:
    ours, theirs = socket_pair()
    order = WorkerOrder(run_dir=str(tmp_path), writer="worker-0", source_dir=str(tmp_path))
    with ours, theirs:
        yield Lab(journal, tmp_path, messages.WorkerLine(ours), order)


def logged(tmp_path: Path) -> list[Logged]:
    return [item for item in read_stream(tmp_path / "worker-0.jsonl") if isinstance(item, Logged)]


def values(tmp_path: Path) -> list[dict[str, float]]:
    return [record.v for record in logged(tmp_path)]


def let_time_fly(patch: pytest.MonkeyPatch) -> list[float]:
    """Let a tenth of a second pass with each sleep, and none else; return where the seconds that passed stand."""
    now = [0.0]
    patch.setattr(time, "monotonic", lambda: now[0])
    patch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + 0.1))
    return now


def hold(late: "LateCuda") -> None:
    """Have no GPU get on."""
    for gpu in late.gpus:
        gpu.pace = 0


def go_on(late: "LateCuda") -> None:
    for gpu in late.gpus:
        gpu.pace = 1


# ---- what is recorded


def test_a_value_is_that_of_its_step_whatever_is_written_over_it(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    hold(late)
    loss = late.tensor(1.0)
    for step in range(4):
        loss.mul_(2.0)
        lab.log(step, loss=loss)
    assert values(tmp_path) == []

    go_on(late)
    lab.close()

    assert [(record.s, record.v) for record in logged(tmp_path)] == [
        (step, {"loss": 2.0 ** (step + 1)}) for step in range(4)
    ]


def test_what_was_logged_on_a_side_stream_is_awaited_there(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    hold(late)
    loss = late.tensor(1.0)
    with late.gpus[0].stream():
        for step in range(4):
            loss.mul_(2.0)
            lab.log(step, loss=loss)

    lab.stage("elsewhere")
    assert values(tmp_path) == []
    go_on(late)
    lab.close()

    assert values(tmp_path) == [{"loss": 2.0}, {"loss": 4.0}, {"loss": 8.0}, {"loss": 16.0}]


def test_values_of_the_host_and_of_two_gpus_are_one_record(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    count = late.tensor([7], 1, torch.int64)

    lab.log(
        0, right=torch.tensor(0.5), loss=late.tensor(2.0) * 3, count=count, is_on=True, arm="fp32"
    )
    lab.close()

    (record,) = logged(tmp_path)
    assert list(record.v.items()) == [("right", 0.5), ("loss", 6.0), ("count", 7.0), ("is_on", 1.0)]
    assert record.a == "fp32"


def test_a_value_that_is_no_number_comes_over_as_well(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    lab.log(0, a=late.tensor(math.nan), b=late.tensor(-math.inf, dtype=torch.float16))
    lab.close()

    assert repr(values(tmp_path)) == "[{'a': nan, 'b': -inf}]"


def test_what_is_logged_in_any_mode_of_torch_comes_over(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    with torch.inference_mode():
        lab.log(0, loss=late.tensor(1.0))
    with torch.device("meta"):
        lab.log(1, loss=late.tensor(2.0))
    lab.log(2, loss=late.tensor(3.0).requires_grad_())
    lab.close()

    assert values(tmp_path) == [{"loss": 1.0}, {"loss": 2.0}, {"loss": 3.0}]


def test_memory_counts_a_log_as_on_the_host(late: "LateCuda", lab: Lab) -> None:
    here, there = torch.tensor(1.0), late.tensor(1.0)

    with lab.memory("host") as host:
        lab.log(0, loss=here)
    with lab.memory("gpu") as gpu:
        lab.log(1, loss=there)

    assert (gpu.operators, gpu.peak_bytes) == (host.operators, host.peak_bytes) == (1, 0)


def test_an_event_serves_a_record_and_is_used_again(late: "LateCuda", lab: Lab) -> None:
    from tests.fakes.late_cuda import LateEvent

    late.gpus[0].pace = 1000
    for step in range(500):
        lab.log(step, loss=late.tensor(1.0), right=late.tensor(0.5))

    assert LateEvent.made == 1


# ---- when it is written


def test_no_call_waits_and_what_has_arrived_is_written_with_the_next(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    hold(late)
    for step in range(300):
        lab.log(step, loss=late.tensor(float(step)))
    lab.progress(300, 300)
    lab.stage("next")
    assert values(tmp_path) == []

    late.gpus[0].current.get_on(2 * 5)  # a copy and an event for each
    lab.log(300, other=1.0)
    lab.stage("later")

    assert [record.s for record in logged(tmp_path)] == [300, 0, 1, 2, 3, 4]
    assert late.gpus[0].queries < 310


def test_a_record_has_the_time_of_its_log(late: "LateCuda", lab: Lab, tmp_path: Path) -> None:
    hold(late)
    times = []
    for step in range(100):
        lab.log(step, loss=late.tensor(1.0))
        times.append(time.monotonic_ns())
    go_on(late)
    lab.close()

    found = logged(tmp_path)
    assert all(record.at <= end for record, end in zip(found, times, strict=True))
    assert all(begin <= record.at for record, begin in zip(found[1:], times, strict=False))
    assert all(record.logged_at == record.at < record.t for record in found)
    series: dict[tuple[str, str, str], Series] = {}
    add_logged(series, "worker-0", found)
    assert series["loss", "", "worker-0"].times == [record.at for record in found]


def test_a_record_has_the_time_before_slots_were_made_for_it(
    late: "LateCuda", lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that a GPU writes to by itself takes long to get."""
    begun: list[int] = []
    make = torch.empty

    def noted(*size: Any, **more: Any) -> torch.Tensor:
        begun.append(time.monotonic_ns())
        return make(*size, **more)

    monkeypatch.setattr(torch, "empty", noted)

    lab.log(0, loss=late.tensor(1.0))
    lab.close()

    assert len(begun) == 1
    assert logged(tmp_path)[0].at <= begun[0]


def test_a_record_of_the_host_has_the_time_when_it_was_written(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    lab.log(0, loss=0.5)

    (record,) = logged(tmp_path)
    assert (record.at, record.logged_at) == (0, record.t)
    assert '"at"' not in (tmp_path / "worker-0.jsonl").read_text()


def test_the_times_of_one_name_never_go_back(late: "LateCuda", lab: Lab, tmp_path: Path) -> None:
    hold(late)
    lab.log(0, loss=late.tensor(1.0))
    lab.log(1, loss=2.0)
    lab.log(1, other=3.0)
    lab.log(2, loss=late.tensor(4.0), other=5.0)
    go_on(late)
    lab.close()

    found = logged(tmp_path)
    assert [(record.s, record.v) for record in found] == [
        (1, {"other": 3.0}), (0, {"loss": 1.0}), (1, {"loss": 2.0}), (2, {"loss": 4.0, "other": 5.0}),
    ]  # fmt: skip
    for name in ("loss", "other"):
        times = [record.logged_at for record in found if name in record.v]
        assert times == sorted(times)


def test_after_all_has_arrived_the_host_logs_at_once(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    lab.log(0, loss=late.tensor(1.0))
    while not values(tmp_path):
        lab.stage("on")

    lab.log(1, loss=2.0)

    assert [record.at > 0 for record in logged(tmp_path)] == [True, False]


def test_what_is_logged_while_a_record_is_written_stands_behind_it(
    late: "LateCuda", lab: Lab, journal: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by another thread, or by a signal handler."""
    append, steps = journal.append, iter([1])

    def interrupted(*given: Any) -> bool:
        for step in steps:
            lab.log(step, loss=2.0)
        return append(*given)

    lab.log(0, loss=late.tensor(1.0))
    monkeypatch.setattr(journal, "append", interrupted)
    lab.close()
    lab.bring_over()

    assert values(tmp_path) == [{"loss": 1.0}, {"loss": 2.0}]


# ---- what is refused


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda late: late.tensor([1.0, 2.0]),
            r"loss takes a number, not a tensor of \(2,\) torch.float32 on cuda:0",
        ),
        (lambda late: late.tensor([]), r"loss takes a number, not a tensor of \(0,\)"),
        (
            lambda late: late.tensor(1j, 1, torch.complex64),
            r"a number, not a tensor of \(\) torch.complex64 on cuda:1",
        ),
        (lambda late: torch.empty((), device="meta"), "loss takes a number, not tensor"),
        (lambda late: "text", "loss takes a number, not 'text'"),
    ],
)
def test_what_is_no_number_is_refused_at_the_call(
    late: "LateCuda", lab: Lab, tmp_path: Path, make: Any, sentence: str
) -> None:
    with pytest.raises(TypeError, match=sentence):
        lab.log(0, first=late.tensor(1.0), loss=make(late))
    lab.close()

    assert values(tmp_path) == []
    assert held_back_records.left(tmp_path) in ({}, {"worker-0": 0})


def test_a_name_that_cannot_be_written_is_refused_at_the_call(late: "LateCuda", lab: Lab) -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        lab.log(0, **{"\ud800": late.tensor(1.0)})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="names and values together: too long"):
        lab.log(0, **{f"value-{number}": late.tensor(1.0) for number in range(2000)})  # type: ignore[arg-type]


def test_while_a_graph_is_recorded_nothing_is_taken_and_nothing_asked_for(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    hold(late)
    lab.log(0, loss=late.tensor(1.0))
    late.gpus[0].is_recording_graph = True
    with pytest.raises(
        ValueError,
        match="loss cannot be logged while its GPU records a graph; log it after a replay",
    ):
        lab.log(1, loss=late.tensor(1.0))
    lab.log(2, other=1.0)
    lab.stage("recording")
    late.gpus[0].is_recording_graph = False
    go_on(late)
    lab.close()

    assert [record.s for record in logged(tmp_path)] == [2, 0]


def test_a_thread_that_logs_numbers_of_the_host_spoils_no_graph_of_another(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    hold(late)
    lab.log(0, loss=late.tensor(1.0))
    late.gpus[0].current.get_on(2)
    late.gpus[0].is_recording_graph, asked = True, late.gpus[0].queries

    def watch() -> None:
        lab.log(1, loss=2.0)
        lab.log(1, other=3.0)
        lab.stage("watching")

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    assert late.gpus[0].queries == asked
    late.gpus[0].is_recording_graph = False
    lab.close()

    assert values(tmp_path) == [{"other": 3.0}, {"loss": 1.0}, {"loss": 2.0}]


def test_a_tensor_that_is_not_plain_is_told_what_to_hand_in(late: "LateCuda", lab: Lab) -> None:
    from tests.fakes.late_cuda import LateTensor

    class Sharded(LateTensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, *rest: Any) -> Any:
            raise RuntimeError("got mixed torch.Tensor and DTensor")

    with pytest.raises(
        TypeError, match=r"loss takes a plain tensor, not a Sharded; pass full_tensor\(\)"
    ):
        lab.log(0, loss=Sharded(torch.tensor(1.0), 0, lambda: torch.tensor(1.0)))


def test_on_another_device_a_log_waits_for_its_value(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    class Elsewhere(torch.Tensor):
        @staticmethod
        def __new__(cls) -> "Elsewhere":
            return torch.Tensor._make_wrapper_subclass(
                cls, (), dtype=torch.float32, device=torch.device("mps", 0)
            )

        @classmethod
        def __torch_dispatch__(cls, func: Any, *rest: Any) -> Any:
            assert func is torch.ops.aten._local_scalar_dense.default
            return 2.5

    lab.log(0, loss=Elsewhere())

    assert values(tmp_path) == [{"loss": 2.5}]


# ---- what the end meets


def test_the_end_goes_on_where_something_else_has_written_the_last_record(
    late: "LateCuda", lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a thread that goes on, or a signal handler, may have."""
    hold(late)
    lab.log(0, loss=late.tensor(1.0))
    late.gpus[0].current.get_on(2)
    stages = iter(["of a handler"])

    def interrupted() -> bool:
        for stage in stages:
            lab.stage(stage)
        return False

    monkeypatch.setattr(late.gpus[0], "is_capturing", interrupted)
    lab.close()

    assert values(tmp_path) == [{"loss": 1.0}]


def test_a_thread_that_goes_on_logging_keeps_no_run_from_its_end(
    late: "LateCuda", lab: Lab, journal: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(late)
    for step in range(3):
        lab.log(step, loss=late.tensor(1.0))
    append, more = journal.append, iter(range(3, 50))

    def with_another(*given: Any) -> bool:
        for step in itertools.islice(more, 1):
            lab.log(step, loss=late.tensor(1.0))
        return append(*given)

    monkeypatch.setattr(journal, "append", with_another)
    go_on(late)
    lab.bring_over()

    assert [record.s for record in logged(tmp_path)] == [0, 1, 2]


def test_a_graph_that_is_never_whole_keeps_no_run_from_its_end(
    late: "LateCuda", lab: Lab, journal: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_time_fly(monkeypatch)
    hold(late)
    for step in range(2):
        lab.log(step, loss=late.tensor(float(step)))
    late.gpus[0].current.get_on(2)
    late.gpus[0].is_recording_graph = True

    lab.close()

    assert values(tmp_path) == [{"loss": 0.0}]
    assert (journal.lost, journal.trouble) == (1, "a GPU recorded a graph 20 s later")


# ---- what is lost


def test_what_a_gpu_had_computed_before_it_failed_is_written_and_the_rest_is_counted(
    late: "LateCuda", lab: Lab, journal: Writer, tmp_path: Path
) -> None:
    hold(late)
    for step in range(100):
        lab.log(step, loss=late.tensor(float(step)), right=0.5)
    late.gpus[0].current.get_on(2 * 40)
    late.gpus[0].fail(
        "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported"
    )

    lab.bring_over()
    lab.close()

    assert [record.s for record in logged(tmp_path) if "loss" in record.v] == list(range(40))
    assert [record.v for record in logged(tmp_path)[40:]] == [{"right": 0.5}] * 60
    assert (journal.lost, journal.trouble) == (60, "CUDA error: device-side assert triggered")


def test_a_gpu_that_hangs_is_given_up_once_and_the_other_one_is_heard(
    late: "LateCuda", lab: Lab, journal: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = let_time_fly(monkeypatch)
    hold(late)
    for step in range(10):
        lab.log(step, loss=late.tensor(1.0, step % 2))
    late.gpus[1].pace = 1

    lab.close()

    assert [record.s for record in logged(tmp_path)] == [1, 3, 5, 7, 9]
    assert (journal.lost, journal.trouble) == (5, "a GPU had not computed them 20 s later")
    assert now[0] < 25


def test_a_log_that_a_gpu_cannot_take_is_not_counted(
    late: "LateCuda", lab: Lab, journal: Writer
) -> None:
    late.gpus[0].fail("CUDA error: unspecified launch failure")
    with pytest.raises((RuntimeError, TypeError)):
        lab.log(0, loss=late.tensor(1.0))
    lab.close()

    assert journal.lost == 0


def test_the_count_of_what_is_held_back_is_on_disk(
    late: "LateCuda", lab: Lab, tmp_path: Path
) -> None:
    hold(late)
    for step in range(7):
        lab.log(step, loss=late.tensor(1.0))
    assert held_back_records.left(tmp_path) == {"worker-0": 7}
    late.gpus[0].current.get_on(2 * 3)
    lab.stage("on")
    assert held_back_records.left(tmp_path) == {"worker-0": 4}

    assert held_back_records.take_count(tmp_path, "worker-0") == 4
    assert held_back_records.left(tmp_path) == {}


def test_what_ranks_held_back_counts_for_their_worker_alone(tmp_path: Path) -> None:
    for name, count in {
        "worker-1": "1",
        "worker-1-rank-2": "10",
        "worker-11": "100",
        "worker-1-x": "rubbish",
        "worker-2": "9" * 20,
    }.items():
        (tmp_path / f"unwritten-{name}").write_text(count)

    assert held_back_records.take_count(tmp_path, "worker-1") == 11
    assert held_back_records.left(tmp_path) == {
        "worker-1-x": 1,
        "worker-11": 100,
        "worker-2": 10**12,
    }


def test_records_of_an_older_version_have_no_time_of_their_own() -> None:
    assert events.Logged(s=1, v={}, t=5).logged_at == 5


# ---- what SIGTERM finds

HOT_LOOP = """
import sys
from pathlib import Path
import pytest
from tests.fakes.late_cuda import install
from tuilab.engine import messages
from tuilab.engine.spawn import socket_pair
from tuilab import Lab
from tuilab.record.journal.writer import Writer
cuda = install(pytest.MonkeyPatch())
cuda.gpus[0].pace = 3
folder = Path(sys.argv[1])
order = messages.WorkerOrder(run_dir=str(folder), writer="worker-0", source_dir=str(folder))
lab = Lab(Writer(folder / "worker-0.jsonl"), folder, messages.WorkerLine(socket_pair()[0]), order)
step, loss = 0, cuda.tensor(0.5)
while True:
    lab.log(step, loss=loss)
    lab.log(step, other=1.0)
    if step % 100 == 0:
        print(step, flush=True)
    step += 1
"""


@pytest.mark.slow
@pytest.mark.real_torch
def test_sigterm_in_a_hot_loop_loses_no_scalar_and_writes_none_twice(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOT_LOOP, str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)
    assert process.stdout is not None
    reported = [int(process.stdout.readline()) for _ in range(5)][-1]
    process.send_signal(signal.SIGTERM)
    process.stdout.read()
    process.stdout.close()

    assert process.wait(timeout=60) == -signal.SIGTERM
    items = read_stream(tmp_path / "worker-0.jsonl")
    steps = [item.s for item in items if isinstance(item, Logged) and "loss" in item.v]
    assert not [item for item in items if isinstance(item, Corrupt | Gap)]
    assert steps == list(range(len(steps))) and len(steps) > reported
    assert held_back_records.left(tmp_path) == {"worker-0": 0}
