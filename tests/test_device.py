"""The door to the device: what is asked of a GPU, and when none is touched."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tuilab.lab.device import devices, torch_gpus
from tuilab.lab.device.cuda import Cuda
from tuilab.lab.device.devices import Cpu
from tuilab.lab.device.interface import AllocatorMemory
from tuilab.lab.device.precision import precision

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

TOO_OLD = "The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver by downloading"

pytest_plugins = ["tests.fakes.cuda"]


def test_what_only_looks_makes_no_context(unused_cuda: "FakeCuda") -> None:
    assert torch_gpus.why_no_cuda() == ""
    assert torch_gpus.count() == 2
    assert isinstance(devices.in_use(), Cpu)
    assert isinstance(devices.in_use(torch.device("cuda:1")), Cpu)
    assert list(devices.all_in_use()) == []
    assert Cuda(0).is_idle() and not Cuda(0).is_capturing()

    assert unused_cuda.initialised_by == ""


def test_cuda_without_an_index_is_the_current_gpu(cuda: "FakeCuda") -> None:
    cuda.set_device(1)

    assert devices.door(torch.device("cuda")).index == 1
    assert devices.door(torch.device("cuda:0")).index == 0
    assert devices.door(torch.device("cpu")).index is None


def test_a_device_that_nobody_would_wait_for_is_refused() -> None:
    with pytest.raises(ValueError, match="device takes the CPU or a CUDA device, not mps"):
        devices.door(torch.device("mps"))


def test_the_gpu_in_use_is_the_one_that_was_chosen_or_else_the_current_one(
    cuda: "FakeCuda",
) -> None:
    assert devices.in_use(torch.device("cuda:1")).index == 1
    assert devices.in_use(torch.device("cpu")).index == 0
    assert devices.in_use().index == 0


def test_gpus_in_use_are_those_that_hold_memory(cuda: "FakeCuda") -> None:
    cuda.gpus[1].allocate(512)

    assert [device.index for device in devices.all_in_use()] == [1]


def test_a_gpu_is_waited_for_on_all_its_streams(cuda: "FakeCuda") -> None:
    side = cuda.side_stream(1)
    cuda.work(3_000_000, side)
    began = cuda.now

    Cuda(0).wait()
    at_once = cuda.now
    Cuda(1).wait()

    assert at_once - began < 10_000
    assert cuda.now - began > 2_900_000


def test_a_gpu_is_idle_when_its_current_stream_has_nothing_to_do(cuda: "FakeCuda") -> None:
    cuda.work(1_000_000)

    assert not Cuda(0).is_idle()
    assert Cuda(1).is_idle()
    Cuda(0).wait()
    assert Cuda(0).is_idle()


def test_marks_are_made_before_a_block_and_not_in_it(cuda: "FakeCuda") -> None:
    gpu = Cuda(1)
    gpu.make_ready()
    gpu.wait()

    began = cuda.now
    gpu.begin()
    cuda.work(200_000, cuda.gpus[1].current)
    cuda.work(300_000, cuda.gpus[1].current)
    assert gpu.has_begun()
    gpu.end()
    assert cuda.now - began == 2 * cuda.RECORD + 2 * cuda.LAUNCH + cuda.QUERY

    gpu.wait()
    assert gpu.stream_ns() == pytest.approx(500_000 + cuda.LAUNCH)
    assert cuda.selected == 0


def test_a_delay_takes_the_time_that_it_should_on_its_gpu(cuda: "FakeCuda") -> None:
    cuda.tick = 1024
    gpu = Cuda(1)
    gpu.make_ready()
    gpu.wait()
    began = cuda.now

    gpu.delay(2_500_000, time.perf_counter_ns)
    told = cuda.now
    gpu.wait()

    assert told - began < 10_000
    assert cuda.now - told == pytest.approx(2_500_000, rel=0.005)


def test_a_delay_of_the_host_uses_its_core(cuda: "FakeCuda") -> None:
    began = time.thread_time_ns()

    Cpu().delay(1_000_000, time.thread_time_ns)

    assert time.thread_time_ns() - began == pytest.approx(1_000_000, rel=0.001)


def test_the_host_has_neither_streams_nor_an_allocator_that_counts() -> None:
    host = Cpu()
    with host.selected():
        for ask in (host.make_ready, host.begin, host.end, host.wait, host.reset_peak):
            ask()

    assert (host.stream_ns(), host.held(), host.uuid) == (None, None, "")
    assert host.is_idle() and not host.is_capturing()


def test_what_is_held_has_a_peak_that_begins_anew(cuda: "FakeCuda") -> None:
    gpu = Cuda(1)
    cuda.gpus[1].allocate(1024, asked=1000)
    cuda.gpus[1].allocate(-512, asked=-500)
    assert gpu.held() == AllocatorMemory(512, 2 << 20, 1024, 2 << 20, 1000)

    gpu.reset_peak()

    assert gpu.held() == AllocatorMemory(512, 2 << 20, 512, 2 << 20, 500)


def test_a_stream_that_records_a_graph_is_known(cuda: "FakeCuda") -> None:
    cuda.is_recording_graph = True

    assert Cuda(0).is_capturing()


def test_gpus_tell_what_they_are(cuda: "FakeCuda") -> None:
    (_, second) = torch_gpus.facts()["devices"]

    assert second == {
        "name": "a fake GPU", "capability": "9.0", "uuid": Cuda(1).uuid, "memory_bytes": 80 << 30, "multiprocessors": 132,
        "l2_bytes": 50 << 20,
    }  # fmt: skip
    assert Cuda(1).uuid == cuda.gpus[1].uuid


def test_a_box_without_gpus_says_why(make_cuda: "Callable[..., FakeCuda]") -> None:
    make_cuda(0, initialised=False)

    assert torch_gpus.count() == 0
    assert torch_gpus.facts().keys() == {"missing"}


@pytest.mark.parametrize(
    ("version", "reason"),
    [(None, "is a build without CUDA"), ("13.0", "torch sees no CUDA device")],
)
def test_a_build_without_cuda_is_another_reason_than_a_driver(
    make_cuda: "Callable[..., FakeCuda]",
    monkeypatch: pytest.MonkeyPatch,
    version: str | None,
    reason: str,
) -> None:
    make_cuda(0, initialised=False)
    monkeypatch.setattr(torch.version, "cuda", version)

    assert reason in torch_gpus.why_no_cuda()


def float32() -> tuple[bool, bool]:
    """Whether TF32 stands in for float32 in products of matrices, and in convolutions."""
    return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize(("name", "allowed"), [("ieee", False), ("tf32", True)])
def test_a_precision_holds_for_its_block_and_touches_no_gpu(
    unused_cuda: "FakeCuda", name: str, allowed: bool
) -> None:
    before = float32()

    with pytest.raises(KeyError), precision(name):
        assert float32() == (allowed, allowed)
        raise KeyError

    assert float32() == before == (False, True), "torch's own: in convolutions only"
    assert unused_cuda.initialised_by == ""


BACKENDS: Any = torch.backends
NEWER = (BACKENDS.cuda.matmul, BACKENDS.cudnn.conv, BACKENDS.cudnn.rnn)


@pytest.mark.parametrize("name", ["ieee", "tf32"])
@pytest.mark.parametrize("of_the_scenario", [None, "tf32", "ieee"])
def test_a_precision_holds_beside_torchs_newer_switches_and_leaves_them_as_they_were(
    name: str, of_the_scenario: str | None
) -> None:
    """Once a scenario has used these, torch refuses to read the older ones."""
    at_first = [one.fp32_precision for one in NEWER]
    try:
        if of_the_scenario:
            for one in NEWER:
                one.fp32_precision = of_the_scenario
        before = [one.fp32_precision for one in NEWER]

        with precision(name):
            assert {one.fp32_precision for one in NEWER} == {name}

        assert [one.fp32_precision for one in NEWER] == before
    finally:
        for one, was in zip(NEWER, at_first, strict=True):
            one.fp32_precision = was


def test_what_is_held_is_not_asked_while_a_graph_is_recorded(cuda: "FakeCuda") -> None:
    asked = cuda.now
    assert Cuda(0).holds() == (0, 0, 0)
    assert cuda.now > asked

    cuda.is_recording_graph, asked = True, cuda.now
    assert Cuda(0).holds() is None
    assert cuda.now == asked


def test_why_there_is_no_cuda_is_told_in_torchs_own_words_and_with_what_may_hide_it(
    make_cuda: "Callable[..., FakeCuda]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    make_cuda(0, initialised=False).why_not = TOO_OLD
    assert torch_gpus.why_no_cuda() == (
        "torch sees no CUDA device: The NVIDIA driver on your system is too old (found version 12020)"
    )

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert torch_gpus.why_no_cuda().endswith(" (CUDA_VISIBLE_DEVICES is empty)")


def test_a_gpu_on_which_a_first_kernel_runs_is_usable_and_keeps_nothing(cuda: "FakeCuda") -> None:
    assert Cuda(1).why_not() == ""
    assert (cuda.gpus[1].allocated, cuda.selected, cuda.gpus[0].is_touched) == (0, 0, False)


def test_a_gpu_that_refuses_says_why_in_one_sentence_and_the_others_go_on(cuda: "FakeCuda") -> None:
    cuda.gpus[
        0
    ].refuses = "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be"

    assert (
        Cuda(0).why_not() == "CUDA error: no kernel image is available for execution on the device"
    )
    assert Cuda(1).why_not() == ""


def test_what_names_no_gpu_runs_on_the_one_that_was_made_current(cuda: "FakeCuda") -> None:
    Cuda(1).make_current()

    assert devices.door(torch.device("cuda")).index == 1
