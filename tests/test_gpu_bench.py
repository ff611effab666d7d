"""What is measured of a GPU, on a model of one that knows how fast it is."""

from typing import TYPE_CHECKING

import pytest

from tests.fakes.cuda_tensors import SPEEDS, give_tensors
from tuilab.doctor.gpu_speed import kernels_for
from tuilab.lab.device.cuda import Cuda
from tuilab.lab.gpu_bench import (
    PRODUCTS,
    copy_rates,
    event_tick_s,
    launch_s,
    memory_rate,
    product_flops,
)

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

pytest_plugins = ["tests.fakes.cuda"]


@pytest.fixture
def gpus(cuda: "FakeCuda", monkeypatch: pytest.MonkeyPatch) -> "FakeCuda":
    """Two GPUs that hold tensors."""
    give_tensors(monkeypatch, cuda)
    return cuda


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("kind", PRODUCTS)
def test_a_product_has_the_pace_of_its_precision(gpus: "FakeCuda", kind: str, index: int) -> None:
    names = {"bf16": "torch.bfloat16", "fp16": "torch.float16"}

    assert product_flops(Cuda(index), kind) == pytest.approx(
        SPEEDS[names.get(kind, kind)], rel=0.02
    )
    assert [gpu.is_touched for gpu in gpus.gpus] == [index == 0, index == 1]


def test_the_memory_of_a_gpu_is_read_and_written(gpus: "FakeCuda") -> None:
    assert memory_rate(Cuda(1)) == pytest.approx(SPEEDS["memory"], rel=0.02)


@pytest.mark.parametrize("is_pinned", [True, False])
def test_copies_are_timed_there_and_back_and_to_their_end(
    gpus: "FakeCuda", is_pinned: bool
) -> None:
    how = "pinned" if is_pinned else "pageable"

    there, back = copy_rates(Cuda(1), is_pinned=is_pinned)
    assert there == pytest.approx(SPEEDS[f"{how} to"], rel=0.02)
    assert back == pytest.approx(SPEEDS[f"{how} back"], rel=0.02)


def test_a_measurement_keeps_no_memory_from_the_next_one(gpus: "FakeCuda") -> None:
    memory_rate(Cuda(1))  # twice 512 MiB
    product_flops(Cuda(1), "bf16")

    assert (gpus.gpus[1].allocated, gpus.gpus[1].reserved) == (0, 3 * (128 << 20))


def test_a_launch_costs_what_the_host_does_for_it(gpus: "FakeCuda") -> None:
    assert launch_s(Cuda(1)) == pytest.approx(gpus.LAUNCH / 1e9, rel=0.01)


@pytest.mark.parametrize("tick", [32, 100, 500, 1024])
def test_the_clock_of_events_is_as_coarse_as_the_spans_that_it_tells(
    gpus: "FakeCuda", tick: int
) -> None:
    gpus.tick = tick

    assert event_tick_s(Cuda(1)) == pytest.approx(tick / 1e9, rel=0.01)


def test_a_clock_that_stands_still_has_no_tick(gpus: "FakeCuda") -> None:
    gpus.is_free = True
    gpus.tick = 10**12

    assert event_tick_s(Cuda(1)) is None


@pytest.mark.parametrize(
    ("architecture", "built", "found"),
    [
        ("sm_90", ["sm_80", "sm_90"], "machine code"),
        ("sm_86", ["sm_80"], "machine code"),
        ("sm_80", ["sm_86"], ""),
        ("sm_90", ["sm_80", "compute_80"], "translated by the driver"),
        ("sm_70", ["sm_75", "compute_90"], ""),
        ("sm_90", ["sm_90a"], "machine code"),
        ("sm_103", ["sm_100a", "compute_100a"], ""),
        ("sm_103", ["sm_100f"], "machine code"),
        ("sm_120", ["sm_90", "sm_120"], "machine code"),
        ("sm_90", ["gfx90a", "sm_", ""], ""),
    ],
)
def test_kernels_run_on_their_generation_or_are_translated_for_a_newer_one(
    architecture: str, built: list[str], found: str
) -> None:
    assert kernels_for(architecture, built) == found
