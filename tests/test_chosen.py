"""Which device a scenario gets, on a model of torch.cuda and of NVML: the emptiest GPU that works, no CPU in silence."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from tuilab.errors import BoxLacks
from tuilab.lab.device.choose_device import ChosenDevice, choose
from tuilab.probes import NotKnown
from tuilab.probes.gpu.free_memory import free_bytes
from tuilab.probes.gpu.is_present import describe_fix, driver_for, gpu_names, is_gpu_there

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.cuda", "tests.fakes.nvml"]

NO_KERNELS = "CUDA error: no kernel image is available for execution on the device"
BUSY = "CUDA error: all CUDA-capable devices are busy or unavailable"
FULL = "CUDA error: out of memory"
TOO_OLD = "The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver."

MakeCuda = Callable[..., "FakeCuda"]


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A box with a GPU, as its files say."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    return tmp_path


@pytest.fixture
def asked(nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch) -> "FakeNvml":
    """An NVML that knows the GPUs of the model of torch.cuda, in another order."""
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    for name in ("LD_LIBRARY_PATH", "TUILAB_FAKE_NVML"):
        monkeypatch.setenv(name, nvml.environment[name])
    return nvml


def knows(nvml: "FakeNvml", cuda: "FakeCuda", used: list[int], *more: str) -> None:
    """Tell NVML how much of each GPU is used; it counts them backwards."""
    numbers = range(len(cuda.gpus))
    uuids = [f"uuid.{at}=GPU-{cuda.gpus[-1 - at].uuid}" for at in numbers]
    nvml.set(f"gpus={len(used)}", *uuids, *(f"used.{at}={used[-1 - at]}" for at in numbers), *more)


def test_auto_takes_the_emptiest_gpu_and_says_so(asked: "FakeNvml", make_cuda: MakeCuda) -> None:
    cuda = make_cuda(4, initialised=False)
    knows(asked, cuda, [70_000, 30_000, 1_024, 5_000], "total=81024")

    chosen = choose("auto")

    assert chosen == ChosenDevice(
        torch.device("cuda:2"), "the GPU with the most free memory of 4: 78.12 KiB free"
    )
    assert cuda.selected == 2
    assert [gpu.is_touched for gpu in cuda.gpus] == [False, False, True, False]


def test_one_that_is_as_empty_as_another_is_the_first(
    asked: "FakeNvml", make_cuda: MakeCuda
) -> None:
    knows(asked, make_cuda(3), [9, 5, 5])

    assert choose("cuda").device == torch.device("cuda:1")


def test_of_one_gpu_nobody_asks_how_much_is_free(asked: "FakeNvml", make_cuda: MakeCuda) -> None:
    make_cuda(1)
    asked.set("mode=segfault", f"log={asked.log}")

    assert choose("auto") == ChosenDevice(torch.device("cuda:0"), "the only GPU that torch sees")
    assert not asked.log.exists()


@pytest.mark.parametrize(
    ("switch", "reason"),
    [
        ("mode=segfault", "NVML ended the process that asked it"),
        ("mode=not_loaded", "the NVIDIA driver is not loaded"),
    ],
)
def test_without_nvml_the_first_that_works_is_taken(
    asked: "FakeNvml", make_cuda: MakeCuda, switch: str, reason: str
) -> None:
    cuda = make_cuda(2)
    cuda.gpus[0].refuses = BUSY
    asked.set("gpus=2", switch)

    chosen = choose("auto")

    assert chosen.device == torch.device("cuda:1")
    assert chosen.why == f"the first of 2 GPUs; free memory unknown: {reason}"


def test_the_gpu_that_the_run_has_used_is_taken_again_though_another_is_emptier(
    asked: "FakeNvml", make_cuda: MakeCuda
) -> None:
    cuda = make_cuda(3)
    knows(asked, cuda, [0, 9_000, 0])

    assert choose("auto", cuda.gpus[1].uuid) == ChosenDevice(
        torch.device("cuda:1"), "the GPU that this run used before"
    )


def test_a_gpu_that_refuses_is_passed_over_and_named(
    asked: "FakeNvml", make_cuda: MakeCuda
) -> None:
    cuda = make_cuda(3)
    knows(asked, cuda, [0, 10, 20])
    cuda.gpus[0].refuses, cuda.gpus[1].refuses = BUSY, FULL

    chosen = choose("auto")

    assert chosen.device == torch.device("cuda:2")
    assert chosen.notice == f"not used: cuda:0: {BUSY}; cuda:1: {FULL}"


def test_a_gpu_that_was_asked_for_by_number_is_the_only_one_that_is_touched(
    asked: "FakeNvml", make_cuda: MakeCuda
) -> None:
    cuda = make_cuda(4, initialised=False)

    assert choose("cuda:3") == ChosenDevice(torch.device("cuda:3"), "asked for")
    assert [gpu.is_touched for gpu in cuda.gpus] == [False, False, False, True]


@pytest.mark.parametrize(
    ("refuses", "step"),
    [
        (NO_KERNELS, "this build of torch, for CUDA n/a, has no kernels for this GPU"),
        (BUSY, "another process uses it exclusively"),
        (FULL, "its memory is full"),
        ("CUDA error: unspecified launch failure", "find the cause with `tuilab doctor`"),
    ],
)
def test_one_that_was_asked_for_and_refuses_is_lacked_and_another_named(
    asked: "FakeNvml", make_cuda: MakeCuda, refuses: str, step: str
) -> None:
    cuda = make_cuda(3)
    knows(asked, cuda, [10, 0, 20])
    cuda.gpus[1].refuses = refuses

    with pytest.raises(BoxLacks) as lacked:
        choose("cuda:1")

    assert str(lacked.value).startswith(f"cuda:1, which cannot be used ({refuses}: {step}")
    assert str(lacked.value).endswith("; --device cuda:0 can be")


def test_where_no_other_works_either_the_cpu_is_named(
    asked: "FakeNvml", make_cuda: MakeCuda
) -> None:
    cuda = make_cuda(2)
    for gpu in cuda.gpus:
        gpu.refuses = BUSY

    with pytest.raises(BoxLacks, match="no other GPU can be; --device cpu runs without one"):
        choose("cuda:1")
    with pytest.raises(
        BoxLacks,
        match=r"a CUDA GPU is needed, but cuda:.*busy.*; use --device cpu to run without one",
    ):
        choose("cuda")


@pytest.mark.parametrize(("count", "seen"), [(1, "1 GPU, cuda:0"), (8, "8 GPUs, cuda:0 to cuda:7")])
def test_a_number_that_no_gpu_has_is_lacked(make_cuda: MakeCuda, count: int, seen: str) -> None:
    cuda = make_cuda(count, initialised=False)

    with pytest.raises(BoxLacks, match=f"^cuda:9: torch sees {seen}$"):
        choose("cuda:9")
    assert cuda.initialised_by == ""


@pytest.mark.parametrize("wanted", ["auto", "cuda"])
def test_each_rank_gets_the_gpu_of_its_number_and_touches_no_other(
    make_cuda: MakeCuda, wanted: str
) -> None:
    cuda = make_cuda(4, initialised=False)

    assert choose(wanted, rank=2) == ChosenDevice(torch.device("cuda:2"), "that of local rank 2")
    assert cuda.selected == 2
    assert [gpu.is_touched for gpu in cuda.gpus] == [False, False, True, False]
    assert choose("cuda:1", rank=2).device == torch.device("cuda:1")


def test_a_rank_whose_gpu_is_not_there_or_refuses_gets_no_other_and_no_cpu(
    make_cuda: MakeCuda,
) -> None:
    make_cuda(2).gpus[1].refuses = BUSY

    with pytest.raises(
        BoxLacks,
        match=r"^a GPU for local rank 2: torch sees 2 GPUs; start one rank per GPU \(--nproc-per-node 2\)$",
    ):
        choose("auto", rank=2)
    with pytest.raises(
        BoxLacks,
        match=f"^cuda:1, the GPU of local rank 1, which cannot be used \\({BUSY}: another process",
    ):
        choose("auto", rank=1)


def test_ranks_of_a_box_without_a_gpu_run_on_its_cpu(make_cuda: MakeCuda, tmp_path: Path) -> None:
    make_cuda(0, initialised=False)

    assert choose("auto", root=tmp_path, rank=1) == ChosenDevice(
        torch.device("cpu"), "this machine has no GPU"
    )


def test_a_box_without_a_gpu_runs_on_the_cpu_and_has_nothing_to_say(
    make_cuda: MakeCuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    make_cuda(0, initialised=False)

    assert choose("auto", root=tmp_path) == ChosenDevice(
        torch.device("cpu"), "this machine has no GPU"
    )
    with pytest.raises(
        BoxLacks,
        match=r"a CUDA GPU is needed, but torch [^:]*; use --device cpu to run without one$",
    ):
        choose("cuda", root=tmp_path)


@pytest.mark.parametrize(
    ("version", "says", "visible", "told"),
    [
        (
            "13.0",
            TOO_OLD,
            None,
            "too old (found version 12020): update the driver (CUDA 13.0 needs 580 or newer), or install",
        ),
        ("12.6", TOO_OLD, None, "update the driver (CUDA 12.6 needs 525 or newer), or install"),
        (
            None,
            "",
            None,
            "is a build without CUDA: run `pip uninstall torch`, then install a build with CUDA",
        ),
        (
            "13.0",
            "No CUDA GPUs are available",
            "",
            "(CUDA_VISIBLE_DEVICES is empty): unset CUDA_VISIBLE_DEVICES, or name a GPU",
        ),
    ],
)
def test_where_torch_cannot_use_the_gpu_auto_runs_on_the_cpu_and_says_why_and_what_to_install(
    make_cuda: MakeCuda, box: Path, monkeypatch: pytest.MonkeyPatch,
    version: str | None, says: str, visible: str | None, told: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    make_cuda(0, initialised=False).why_not = says

    chosen = choose("auto", root=box)

    assert chosen.device == torch.device("cpu")
    assert (
        chosen.notice.startswith("this ran on the CPU, although the machine has a GPU: torch ")
        and told in chosen.notice
    )
    with pytest.raises(BoxLacks) as lacked:
        choose("cuda:0", root=box)
    assert told in str(lacked.value)


def test_where_each_gpu_refuses_auto_runs_on_the_cpu_and_says_so(
    asked: "FakeNvml", make_cuda: MakeCuda
) -> None:
    make_cuda(1).gpus[0].refuses = NO_KERNELS

    chosen = choose("auto")

    assert chosen.device == torch.device("cpu")
    assert chosen.notice.startswith(
        f"this ran on the CPU, although the machine has a GPU: cuda:0: {NO_KERNELS}: this build of torch"
    )


def test_gpus_are_named_as_cuda_names_those_that_are_not_hidden(box: Path) -> None:
    (box / "dev/nvidia1").touch()
    (box / "dev/nvidiactl").touch()

    assert gpu_names(box, {}) == ["cuda:0", "cuda:1"]
    assert gpu_names(box, {"CUDA_VISIBLE_DEVICES": "MIG-a"}) == ["cuda:0"]
    assert (
        gpu_names(box, {"CUDA_VISIBLE_DEVICES": ""})
        == gpu_names(box, {"CUDA_VISIBLE_DEVICES": "-1"})
        == []
    )
    assert gpu_names(box / "dev", {"CUDA_VISIBLE_DEVICES": "0,1"}) == []


def test_a_gpu_under_wsl_is_one_where_its_driver_is_there(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/dxg").touch()
    assert not is_gpu_there(tmp_path)

    library = tmp_path / "usr/lib/wsl/lib/libcuda.so.1"
    library.parent.mkdir(parents=True)
    library.touch()
    assert is_gpu_there(tmp_path)


@pytest.mark.parametrize(
    ("cuda", "driver"), [("13.0", "580 or newer"), ("12.6", "525 or newer"), ("14.1", ""), ("", "")]
)
def test_a_build_wants_a_driver(cuda: str, driver: str) -> None:
    assert driver_for(cuda) == driver


@pytest.mark.parametrize(
    ("cuda", "step"),
    [
        ("13.0", "older than Turing, run pip uninstall -y torch && pip install"),
        ("12.6", "install a build for a newer CUDA"),
    ],
)
def test_a_gpu_that_a_build_has_no_kernels_for_is_too_old_or_too_new(cuda: str, step: str) -> None:
    assert step in describe_fix(NO_KERNELS, cuda)


def test_an_nvml_that_does_not_answer_costs_seconds_and_not_the_run(
    nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LD_LIBRARY_PATH", "TUILAB_FAKE_NVML"):
        monkeypatch.setenv(name, nvml.environment[name])
    nvml.set("gpus=2", "mode=hang")

    with pytest.raises(NotKnown, match=r"^NVML has not answered for 0\.2 s$"):
        free_bytes(0.2)


def test_a_gpu_that_is_lost_or_does_not_tell_is_left_out(
    nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LD_LIBRARY_PATH", "TUILAB_FAKE_NVML"):
        monkeypatch.setenv(name, nvml.environment[name])
    nvml.set("gpus=3", "used=1000", "na.1=used", "total=81000")

    assert free_bytes() == {"GPU-fake-0": 80_000, "GPU-fake-2": 80_000}


def test_a_gpu_that_nobody_may_run_ahead_of_is_told(
    make_cuda: MakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    make_cuda(1)

    assert "all times are longer" in choose("auto").notice
    assert choose("cpu").notice == ""
