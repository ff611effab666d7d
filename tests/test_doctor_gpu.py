"""`tuilab doctor --gpu`: what is told of one GPU, on models of torch.cuda and of NVML, and when either hangs or crashes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tests.conftest import LIGHT
from tests.engine import until
from tests.fakes.cuda_tensors import give_tensors
from tuilab.cli.verbs import doctor
from tuilab.doctor import gpu_speed
from tuilab.doctor.ask_all import parse
from tuilab.doctor.gpu_page import ask_about
from tuilab.errors import BoxLacks
from tuilab.lab.device.cuda import Cuda
from tuilab.probes.gpu.tenants import user_of

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.cuda", "tests.fakes.nvml"]

UUID = "fake-0"  # as torch writes it, without NVML's `GPU-`
TORCH = """
import contextlib, os, signal, sys, time, types

def stop(*_):
    {fault}

cuda = types.SimpleNamespace(
    is_available=lambda: True, device_count=lambda: 1, device=contextlib.nullcontext, set_device=id, synchronize=id,
    caching_allocator_alloc=id, caching_allocator_delete=id, _sleep=id, Event=object, get_arch_list=stop,
    get_device_properties=lambda _: types.SimpleNamespace(name="A GPU", major=9, minor=0, uuid="fake-0"),
)
sys.modules[__name__ + ".cuda"] = cuda
"""


@pytest.fixture
def fake(nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch) -> "FakeNvml":
    for name in ("LD_LIBRARY_PATH", "TUILAB_FAKE_NVML"):
        monkeypatch.setenv(name, nvml.environment[name])
    return nvml


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Put a torch into the processes that are started, whose GPU works until it is asked what it was built for."""

    def put(fault: str) -> None:
        (tmp_path / "torch").mkdir(exist_ok=True)
        whole = Path(LIGHT, "torch/__init__.py").read_text()
        (tmp_path / "torch/__init__.py").write_text(whole + TORCH.format(fault=fault))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return put


@pytest.fixture
def told(
    capfd: pytest.CaptureFixture[str],
) -> Callable[[str], tuple[dict[str, str], dict[str, Any]]]:
    """What the process that uses a GPU says of it, and its answers."""

    def tell(wanted: str) -> tuple[dict[str, str], dict[str, Any]]:
        gpu_speed.main(wanted)
        said = capfd.readouterr().out
        return json.loads(said.split("\n")[1]), parse(said.encode())

    return tell


# ---- what torch says


def test_all_of_a_gpu_is_measured_on_it_alone(
    told: Callable[..., Any], make_cuda: "Callable[..., FakeCuda]", monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = make_cuda(2, initialised=False)
    cuda.tick = 500
    give_tensors(monkeypatch, cuda)

    gpu, found = told("cuda:1")

    assert gpu == {
        "device": "cuda:1",
        "why": "asked for",
        "uuid": cuda.gpus[1].uuid,
        "name": "a fake GPU",
    }
    assert {name: finding.status for name, finding in found.items()} == dict.fromkeys(
        gpu_speed.CHECKS, "pass"
    )
    assert {name: finding.found for name, finding in found.items()} == {
        "gpu.kernel": "a test kernel ran",
        "gpu.architecture": "sm_90; torch is built for sm_80, sm_90, compute_90",
        "gpu.launch": "4 us to launch a small kernel from torch",
        "gpu.event_clock": "events resolve differences of 0.5 us",
        "gpu.copy_pinned": "pinned host memory: 55 GB/s to the GPU, 53 GB/s back",
        "gpu.copy_pageable": "pageable host memory: 12 GB/s to the GPU, 8.99 GB/s back",
        "gpu.product_ieee": "50 TFLOP/s",
        "gpu.product_tf32": "400 TFLOP/s",
        "gpu.product_bf16": "800 TFLOP/s",
        "gpu.product_fp16": "790 TFLOP/s",
        "gpu.bandwidth": "4000 GB/s read and written",
    }
    assert [gpu.is_touched for gpu in cuda.gpus] == [False, True]


def test_what_does_not_fit_is_not_known_and_the_rest_is(
    told: Callable[..., Any], cuda: "FakeCuda", monkeypatch: pytest.MonkeyPatch
) -> None:
    give_tensors(monkeypatch, cuda)
    cuda.gpus[1].room = 600 << 20

    _, found = told("cuda:1")

    unknown = [name for name, finding in found.items() if finding.status == "n/a"]
    assert unknown == ["gpu.product_ieee", "gpu.product_tf32", "gpu.bandwidth"]
    assert found["gpu.bandwidth"].found.startswith(
        "not enough GPU memory is free: CUDA out of memory."
    )


def test_an_error_of_the_gpu_is_a_failure_of_it(
    told: Callable[..., Any], cuda: "FakeCuda", monkeypatch: pytest.MonkeyPatch
) -> None:
    give_tensors(monkeypatch, cuda)
    illegal = "CUDA error: an illegal memory access was encountered"

    def fail() -> list[str]:
        cuda.broken = illegal
        return ["sm_90"]

    monkeypatch.setattr("torch.cuda.get_arch_list", fail)

    _, found = told("cuda")

    assert [(name, one.found) for name, one in found.items() if one.status == "fail"] == [
        (name, illegal)
        for name in gpu_speed.CHECKS
        if name not in ("gpu.kernel", "gpu.architecture")
    ]


@pytest.mark.parametrize(
    ("built", "status", "words"),
    [
        (["sm_80"], "fail", "sm_90; torch is built for sm_80, and has no kernels for this GPU"),
        (
            ["compute_80"],
            "warn",
            "sm_90; torch is built for compute_80; each kernel is translated by the driver at its first use",
        ),
        (["gfx90a"], "n/a", "sm_90; torch is built for gfx90a; these are not NVIDIA architectures"),
    ],
)
def test_a_build_without_kernels_for_a_gpu_is_told(
    cuda: "FakeCuda", built: list[str], status: str, words: str
) -> None:
    cuda.compiled_for = built

    finding = gpu_speed.architecture(Cuda(0))
    assert (finding.status, finding.found) == (status, words)


def test_launches_that_wait_are_told_with_what_makes_them(
    cuda: "FakeCuda", monkeypatch: pytest.MonkeyPatch
) -> None:
    give_tensors(monkeypatch, cuda)
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")

    finding = gpu_speed.launch(Cuda(0))
    assert finding.status == "warn" and finding.found.endswith(
        "CUDA_LAUNCH_BLOCKING makes torch wait for each kernel"
    )


def test_a_clock_that_tells_nothing_apart_and_a_kernel_that_fails_are_told(
    cuda: "FakeCuda",
) -> None:
    cuda.is_free, cuda.tick = True, 10**12
    assert gpu_speed.event_clock(Cuda(0)).status == "n/a"
    cuda.gpus[0].refuses = "CUDA error: unspecified launch failure"

    assert gpu_speed.kernel(Cuda(0)).found == "CUDA error: unspecified launch failure"


@pytest.mark.parametrize(
    ("refuses", "lacks"),
    [
        ("", ""),
        (
            "CUDA error: out of memory",
            "cuda:0 cannot be used (CUDA error: out of memory: its memory is full",
        ),
    ],
)
def test_a_gpu_that_does_not_work_is_told_with_what_to_do(
    told: Callable[..., Any], make_cuda: "Callable[..., FakeCuda]", refuses: str, lacks: str
) -> None:
    cuda = make_cuda(1 if refuses else 0, initialised=False)
    for gpu in cuda.gpus:
        gpu.refuses = refuses

    gpu, found = told("cuda")

    assert gpu["lacks"].startswith(lacks) and gpu.keys() == {"lacks"} and found == {}


def test_a_number_that_no_gpu_has_is_told(told: Callable[..., Any], cuda: "FakeCuda") -> None:
    assert told("cuda:9")[0] == {"lacks": "cuda:9: torch sees 2 GPUs, cuda:0 to cuda:1"}


# ---- what NVML says


def state(
    fake: "FakeNvml", *lines: str, uuid: str = UUID, meanwhile: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Return the answers about a GPU that is looked at while something happens."""
    fake.set(f"log={fake.log}", *lines)
    asked = subprocess.Popen(
        [sys.executable, "-P", "-m", "tuilab.doctor.gpu_state", uuid, str(fake.box)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    if meanwhile:
        meanwhile()
    return parse(asked.communicate(timeout=60)[0])


def looks(fake: "FakeNvml") -> int:
    """Return how often the width of the link was asked for."""
    return (
        fake.log.read_text().count("pcie_width\n") - fake.log.read_text().count("most_pcie_width\n")
        if fake.log.exists()
        else 0
    )


def test_a_gpu_in_order_passes(fake: "FakeNvml") -> None:
    found = state(fake, "gpus=2", "nvlinks=18")

    assert {
        name: one.found for name, one in found.items() if name not in ("gpu.cuda", "gpu.nvml_cost")
    } == {
        "gpu.driver": "driver 999.99, NVML 13.999.99",
        "gpu.pcie": "PCIe 5 x16 under load, of at most 5 x16",
        "gpu.clocks_reached": "SM 1980 MHz of 1980, memory 2619 MHz of 2619, under load",
        "gpu.throttling": "the clocks were not throttled",
        "gpu.power": "limit 700 W, at most 250 W under load",
        "gpu.persistence": "persistence mode is on: the driver stays loaded between runs",
        "gpu.links": "18 of 18 NVLinks up; direct access to the other GPU",
        "gpu.memory": "ECC is on; 0 remapped rows",
        "gpu.neighbours": "no other process uses this GPU",
    }
    assert {one.status for name, one in found.items() if name != "gpu.cuda"} == {"pass"}
    assert " us for a reading; slowest: " in found["gpu.nvml_cost"].found


def test_what_sleeps_when_nobody_works_counts_as_it_was_at_work(fake: "FakeNvml") -> None:
    asleep = ("pcie_generation=1", "sm_clock=210", "power=60000")

    def work() -> None:
        until(lambda: looks(fake) > 0)
        fake.set(
            f"log={fake.log}", "pcie_generation=4", "sm_clock=1400", "power=500000", "throttle=0x44"
        )
        seen = looks(fake)
        until(lambda: looks(fake) > seen + 1)
        fake.set(*asleep)

    found = state(fake, *asleep, meanwhile=work)

    assert (found["gpu.pcie"].status, found["gpu.pcie"].found) == (
        "warn",
        "PCIe 4 x16 under load, of at most 5 x16",
    )
    assert found["gpu.clocks_reached"].found.startswith("SM 1400 MHz of 1980, ")
    assert found["gpu.power"].found == "limit 700 W, at most 500 W under load"
    assert (found["gpu.throttling"].status, found["gpu.throttling"].found) == (
        "warn",
        "hardware thermal slowdown, power cap",
    )


@pytest.mark.parametrize(
    ("line", "name", "status", "words"),
    [
        (
            "pcie_width=8",
            "gpu.pcie",
            "warn",
            "PCIe 5 x8 under load, of at most 5 x16: copies to and from the host are slow",
        ),
        ("throttle=4", "gpu.throttling", "pass", "power cap"),
        (
            "power_limit=300000",
            "gpu.power",
            "warn",
            "limit 300 W, at most 250 W under load; the default limit is 700 W",
        ),
        ("persistence=0", "gpu.persistence", "warn", "persistence mode is off"),
        ("rows=3", "gpu.memory", "pass", "ECC is on; 3 remapped rows"),
        ("rows_pending=1", "gpu.memory", "fail", "a remapping waits for a reset"),
        ("rows_failed=1", "gpu.memory", "fail", "and remapping a row failed"),
        (
            "na=rows",
            "gpu.memory",
            "pass",
            "ECC is on; remapped rows n/a: NVMLError_NotSupported: Not Supported",
        ),
        ("na=ecc_mode", "gpu.memory", "n/a", "NVMLError_NotSupported: Not Supported"),
        ("na=pcie_width", "gpu.pcie", "n/a", "NVMLError_NotSupported: Not Supported"),
        (
            "missing=most_sm_clock",
            "gpu.clocks_reached",
            "pass",
            "SM n/a (NVMLError_FunctionNotFound",
        ),
        (
            "pids=99999999",
            "gpu.neighbours",
            "warn",
            "user n/a (its process is not visible from here), pid 99999999, 300 B",
        ),
        ("pids=99999999,99999998", "gpu.neighbours", "warn", "pid 99999998, 300 B; user n/a ("),
        ("sleep_ms=11", "gpu.nvml_cost", "warn", "us for a reading; slowest: "),
    ],
)
@pytest.mark.first(3)
def test_what_is_wrong_with_a_gpu_is_told(
    fake: "FakeNvml", line: str, name: str, status: str, words: str
) -> None:
    finding = state(fake, line)[name]

    assert finding.status == status and words in finding.found
    assert finding.next_step or status not in ("warn", "fail")


@pytest.mark.parametrize(
    ("lines", "status", "words"),
    [
        (["gpus=1", "nvlinks=18"], "n/a", "this machine has no other GPU"),
        (
            ["gpus=8", "nvlinks=18", "nvlinks_up=17"],
            "warn",
            "17 of 18 NVLinks up; direct access to 7 other GPUs",
        ),
        (
            ["gpus=8", "nvlinks=4", "nvlinks_up=0", "p2p=1"],
            "pass",
            "0 of 4 NVLinks up; direct access to 0 of 7 other GPUs",
        ),
        (
            ["gpus=2", "p2p=4"],
            "pass",
            "no NVLink; direct access to 0 of 1 other GPU (switched off in the driver)",
        ),
        (
            ["gpus=2", "denied=nvlink", "nvlinks=1", "na=p2p"],
            "n/a",
            "NVMLError_NoPermission: Insufficient Permissions",
        ),
        (
            ["gpus=2", "missing=p2p"],
            "pass",
            "no NVLink; direct access to other GPUs: n/a (Function Not Found",
        ),
        (
            ["gpus=2", "slices=1", "uuid.0:0=GPU-fake-0", "uuid.0=GPU-w"],
            "n/a",
            "a slice of a GPU (MIG) has no links to other GPUs",
        ),
    ],
)
def test_what_links_a_gpu_to_the_others_is_told(
    fake: "FakeNvml", lines: list[str], status: str, words: str
) -> None:
    finding = state(fake, *lines)["gpu.links"]

    assert finding.status == status and words in finding.found
    assert finding.next_step or status != "warn"


def test_lanes_that_the_slot_does_not_have_are_missed_all_the_same(fake: "FakeNvml") -> None:
    """NVML's most is what the slot leaves; the kernel knows what the GPU itself has."""
    lanes = fake.box / "sys/bus/pci/devices/0000:17:00.0/max_link_width"
    lanes.parent.mkdir(parents=True)
    lanes.write_text("16\n")

    finding = state(fake, "pcie_width=8", "most_pcie_width=8")["gpu.pcie"]
    assert (finding.status, finding.found[:42]) == (
        "warn",
        "PCIe 5 x8 under load, of at most 5 x16: co",
    )


def test_a_neighbour_is_told_by_its_user_and_in_a_container_by_its_memory(fake: "FakeNvml") -> None:
    (fake.box / "proc/42").mkdir(parents=True)
    seen = state(fake, "pids=42", "pid_bytes=2147483648")["gpu.neighbours"]
    fake.set_namespace("pid:[1]")
    hidden = state(fake, "pids=42,43", "pid_bytes=1073741824")["gpu.neighbours"]

    user, _ = user_of(42, fake.box)
    assert user != "42" and seen.found == f"{user}, pid 42, 2 GiB"
    assert hidden.found == (
        "2 processes, 2 GiB; users n/a: not visible in a container: the driver names processes by pids of the host"
    )


def test_a_slice_has_the_link_and_the_clocks_of_the_whole(fake: "FakeNvml") -> None:
    found = state(fake, "slices=1", "uuid.0:0=MIG-ab-cd", uuid="ab-cd")

    assert found["gpu.pcie"].found == "PCIe 5 x16 under load, of at most 5 x16"
    assert found["gpu.power"].found == "limit 700 W, at most n/a under load"


def test_a_gpu_that_nvml_does_not_know_or_that_it_may_not_ask_costs_what_is_told_of_it(
    fake: "FakeNvml",
) -> None:
    strange = state(fake, "gpus=2", uuid="somebody-else")
    refused = state(fake, "mode=no_permission")

    assert strange["gpu.driver"].status == "pass"
    assert strange["gpu.pcie"].found == "NVML does not know the GPU that torch uses"
    assert refused["gpu.power"].found == "no permission to use the NVIDIA driver (/dev/nvidia*)"


# ---- both, and what happens to them


def test_a_gpu_that_crashes_its_process_fails_there_and_nvml_is_heard(
    fake: "FakeNvml", broken: Callable[[str], None]
) -> None:
    broken("os.kill(os.getpid(), signal.SIGSEGV)")

    done = CliRunner().invoke(doctor.command, ["--gpu", "--json"], standalone_mode=False)

    document = json.loads(done.stdout)
    found = {check["id"]: check for check in document["checks"]}
    assert (done.return_value, document["exit_code"]) == (2, 2)
    assert [found["gpu.kernel"]["status"], found["gpu.architecture"]["status"]] == ["pass", "fail"]
    assert found["gpu.architecture"]["found"] == "the process that checks it crashed with signal 11"
    assert found["gpu.launch"]["found"] == "not checked, because gpu.architecture failed to answer"
    assert found["gpu.pcie"]["found"] == "PCIe 5 x16 under load, of at most 5 x16"
    assert document["facts"][0]["value"] == "cuda:0 A GPU"


def test_a_gpu_that_hangs_is_given_up(fake: "FakeNvml", broken: Callable[[str], None]) -> None:
    broken("time.sleep(600)")

    found = ask_about("cuda:0", patience_s=2.0).found()

    assert (
        found["gpu.architecture"].found == "no answer within 2 s"
        and found["gpu.architecture"].status == "fail"
    )
    assert found["gpu.power"].status == "pass"


def test_an_nvml_that_crashes_costs_its_own_answers_only(
    fake: "FakeNvml", broken: Callable[[str], None]
) -> None:
    broken("return ['sm_90']")
    fake.set("mode=segfault")

    told = [
        " ".join(line.split())
        for line in CliRunner().invoke(doctor.command, ["--gpu"]).stdout.splitlines()
    ]

    assert told[:3] == ["GPU", "device cuda:0 A GPU (the only GPU that torch sees)", "UUID fake-0"]
    assert {line.partition(" ")[2] for line in told} >= {
        "gpu.kernel a test kernel ran",
        "gpu.architecture sm_90; torch is built for sm_90",
        "gpu.driver n/a: the process that checks it crashed with signal 11",
        "gpu.pcie n/a: not checked, because gpu.driver failed to answer",
    }


def test_a_torch_that_does_not_get_as_far_as_a_gpu_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(
        BoxLacks,
        match="a GPU that answers: torch was asked for a GPU, but the process that checks it ended early, with exit code 1",
    ):
        ask_about("cuda")


@pytest.mark.parametrize("name", ["cuda:x", "MIG-1", "gpu"])
def test_what_names_no_gpu_is_told_before_anything_is_asked(
    tuilab: Callable[..., Any], name: str
) -> None:
    done = tuilab("doctor", "--gpu", name)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f'tuilab: --gpu takes cuda or cuda:N, for example cuda:1, not "{name}"'
    )
    assert ("set CUDA_VISIBLE_DEVICES" in done.stderr) == (name == "MIG-1")


@pytest.mark.real_torch
@pytest.mark.slow
def test_a_box_without_a_gpu_says_so_in_a_sentence(tuilab: Callable[..., Any]) -> None:
    done = tuilab("doctor", "--gpu", "--json")

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("tuilab: torch ") and done.stderr.count("\n") == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to somebody else")
def test_a_neighbour_whose_user_has_no_number_in_a_container_is_not_called_nobody(
    fake: "FakeNvml",
) -> None:
    (fake.box / "proc/42").mkdir(parents=True)
    os.chown(fake.box / "proc/42", 65534, 65534)

    found = state(fake, "pids=42")["gpu.neighbours"].found
    assert found == "user n/a (its user does not exist in this container), pid 42, 300 B"
