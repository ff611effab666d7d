"""NVML held against torch: the same GPUs, the same memory, and a sampler that watches the right one."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest
import torch

from tests.engine import newest, read_stream, write_scenario
from tuilab.lab.device import devices, torch_gpus
from tuilab.probes import NotKnown
from tuilab.probes.gpu.free_memory import free_bytes
from tuilab.probes.gpu.gpu_choices import cuda_numbers
from tuilab.probes.gpu.meters import METERS, METERS_OF_SLICE
from tuilab.probes.gpu.nvml import PROCESSES, SHARE, Gpu, Gpus, throttle_names
from tuilab.record.events import RaceFinished, RaceStarted, Sampled, Unavailable
from tuilab.record.gpus.raced_gpu import nvml_uuid

if TYPE_CHECKING:
    from tests.gpu.page import Page
    from tuilab.lab.device.cuda import Cuda

Tuilab = Callable[..., "CompletedProcess[str]"]

RACES = """
device = lab.device("cuda")
held = torch.ones(2 << 30, dtype=torch.uint8, device=device)
a = torch.randn(2048, 2048, device=device)
lab.race(one=lambda: a @ a, two=lambda: a + a, seconds=6)
"""


@pytest.fixture
def watched(gpus: Gpus, gpu: "Cuda") -> Gpu:
    """NVML's view of the GPU."""
    torch.zeros(1, device="cuda")
    known = {one.uuid: one for one in gpus.available}
    return known[nvml_uuid(gpu.uuid, known)]


def test_torch_and_nvml_have_one_name_for_a_gpu(gpus: Gpus, gpu: "Cuda", page: "Page") -> None:
    page.note("nvml", "torch's name", gpu.uuid)
    page.note("nvml", "NVML's names", [one.uuid for one in gpus.available])

    assert nvml_uuid(gpu.uuid, [one.uuid for one in gpus.available])


def test_cudas_numbers_are_told_without_cuda(gpus: Gpus) -> None:
    try:
        told = cuda_numbers(gpus.available, os.environ)
    except NotKnown as problem:
        pytest.skip(str(problem))
    torchs = [devices.gpu(number).uuid for number in range(torch_gpus.count())]

    assert [nvml_uuid(uuid, [one.uuid for one in gpus.available]) for uuid in torchs] == [
        one.uuid for one in told
    ]


def test_what_is_free_is_what_torch_says(watched: Gpu, device: torch.device) -> None:
    free, _ = torch.cuda.mem_get_info(device)

    assert free_bytes()[watched.uuid] == pytest.approx(free, abs=1 << 30)


def test_what_torch_has_reserved_is_used(
    gpus: Gpus, watched: Gpu, device: torch.device, page: "Page"
) -> None:
    held = torch.ones(1 << 30, dtype=torch.uint8, device=device)
    torch.cuda.synchronize()
    reserved = torch.cuda.memory_reserved(device)
    used = gpus.read(watched, ["memory_used_bytes"]).values["memory_used_bytes"]
    page.note("nvml", "used beside what torch has reserved", f"{(used - reserved) / 2**20:.0f} MiB")

    assert held.numel() <= reserved <= used


def test_each_meter_says_something_or_why_it_does_not(
    gpus: Gpus, watched: Gpu, page: "Page"
) -> None:
    for name in (*(METERS_OF_SLICE if watched.slice else METERS), SHARE, PROCESSES):
        costs = []
        for _ in range(20):
            began = time.perf_counter()
            reading = gpus.read(watched, [name])
            costs.append(time.perf_counter() - began)
        said = reading.values or reading.missing
        page.note(
            "nvml: a question, what it costs and what it says",
            name,
            f"{1000 * median(costs):.2f} ms  {said}",
        )
        assert said or name == SHARE  # nobody else has computed there since


def test_the_share_of_others_on_a_gpu_of_ones_own_is_little(gpus: Gpus, watched: Gpu) -> None:
    gpus.read(watched, [SHARE, PROCESSES], {os.getpid()})
    time.sleep(1)
    reading = gpus.read(watched, [SHARE, PROCESSES], {os.getpid()})
    if SHARE not in reading.values:
        pytest.skip(f"the driver does not tell: {reading.missing}")

    assert reading.values[SHARE] <= 100


def test_what_holds_the_clocks_down_has_a_name(gpus: Gpus, watched: Gpu, page: "Page") -> None:
    mask = gpus.read(watched, ["throttle_mask"]).values.get("throttle_mask")
    if mask is None:
        pytest.skip("the driver does not tell")
    names = throttle_names(int(mask))
    page.note("nvml", "clocks are held down by", names or "nothing")

    assert not any(name.startswith("bit ") for name in names)


def test_the_sampler_watches_the_gpu_of_the_race(
    tuilab: Tuilab, root: Path, tmp_path: Path, watched: Gpu, page: "Page"
) -> None:
    done = tuilab(
        "run", str(write_scenario(tmp_path, RACES, "import torch\n")), "--headless", "--quiet"
    )
    run_dir = newest(root)
    assert run_dir is not None and done.returncode == 0, done.stderr
    journal = run_dir / "journal"
    worker = read_stream(journal / "worker-0.jsonl")
    (began,) = [item.t for item in worker if isinstance(item, RaceStarted)]
    (ended,) = [item.t for item in worker if isinstance(item, RaceFinished)]
    sampler = read_stream(journal / "sampler.jsonl")
    samples = [
        item
        for item in sampler
        if isinstance(item, Sampled) and began <= item.t <= ended and watched.uuid in item.gpus
    ]
    used = [
        s.gpus[watched.uuid]["memory_used_bytes"]
        for s in samples
        if "memory_used_bytes" in s.gpus[watched.uuid]
    ]
    own = [
        s.gpus[watched.uuid]["memory_tree_bytes"]
        for s in samples
        if "memory_tree_bytes" in s.gpus[watched.uuid]
    ]
    reasons = [f"{item.what}: {item.reason}" for item in sampler if isinstance(item, Unavailable)]
    page.note("sampler", "samples of a race of", f"{(ended - began) / 1e9:.1f} s: {len(samples)}")
    page.note("sampler", "this run has", f"{max(own) / 2**30:.2f} GiB" if own else "n/a")
    page.note("sampler", "n/a", reasons)

    assert len(samples) >= (ended - began) / 1e9  # twice a second, if nothing is in the way
    assert used and max(used) >= 2 << 30
    assert own or reasons
    assert not own or max(own) >= 2 << 30


def test_a_slice_of_a_gpu_is_one_to_run_on(tuilab: Tuilab, gpus: Gpus) -> None:
    slices = [one for one in gpus.available if one.slice]
    if not slices:
        pytest.skip("no GPU here is cut into slices (MIG)")
    environment = {"CUDA_VISIBLE_DEVICES": slices[0].uuid}

    done = tuilab(
        "run", "xyy", "--device", "cuda", "--headless", "--quick", "--quiet", env=environment
    )

    assert done.returncode == 0, done.stderr


def test_a_gpu_that_somebody_has_for_himself_is_said_to_be_busy(
    tuilab: Tuilab, watched: Gpu
) -> None:
    query = [
        "nvidia-smi",
        f"--id={watched.uuid}",
        "--query-gpu=compute_mode",
        "--format=csv,noheader",
    ]
    try:
        mode = subprocess.run(query, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        pytest.skip("nvidia-smi does not tell the compute mode")
    if mode != "Exclusive_Process":
        pytest.skip(
            f"the compute mode is {mode or 'n/a'}; only who is root may set Exclusive_Process"
        )

    done = tuilab("run", "xyy", "--device", "cuda", "--headless", "--quick")

    assert done.returncode == 3 and "exclusive mode" in done.stdout + done.stderr
