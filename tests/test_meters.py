"""The meter of memory and operators: exact numbers, the same on every machine."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from tuilab.lab.meters.memory import Memory

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

pytest_plugins = ["tests.fakes.cuda"]


class Recorder:
    """As much of a lab as the meter uses."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.points: list[tuple[int, float]] = []

    def record(self, event: Any) -> None:
        self.events.append(event)

    def log(self, step: int, *, arm: str, live_bytes: float) -> None:
        self.points.append((step, live_bytes))


def meter(
    model: nn.Module | None = None, timeline: bool = False, lab: Recorder | None = None
) -> Memory:
    return Memory(lab or Recorder(), "block", "", model, timeline)


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What dies, dies of its last reference: the garbage collector is off."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_storage_counts_from_birth_to_death_in_grains_of_512_bytes() -> None:
    with meter() as memory:
        a = torch.zeros(1)
        b = torch.zeros(129)
        live_with_both = memory.live_bytes
        del b

    assert live_with_both == 512 + 1024
    assert memory.live_bytes == 512
    assert memory.peak_bytes == 1536
    assert memory.operators == 2
    assert a.item() == 0


def test_a_tensor_made_of_python_numbers_counts() -> None:
    with meter() as memory:
        x = torch.tensor([1.0, 2.0])

    assert memory.live_bytes == 512
    assert x.numel() == 2


def test_a_view_of_what_was_there_before_is_no_new_memory() -> None:
    x, layer = torch.zeros(1024), nn.Linear(64, 64)

    with meter() as memory:
        views = [x.view(32, 32), x[::2], layer.weight.t(), layer.weight.detach()]

    assert memory.peak_bytes == 0
    assert memory.operators == len(views)


def test_an_operator_in_place_makes_no_new_memory() -> None:
    x = torch.zeros(1024)

    with meter() as memory:
        x.add_(1)

    assert memory.peak_bytes == 0


def test_activations_are_saved_bytes_and_weights_are_not() -> None:
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))
    x = torch.zeros(4, 10)

    with meter() as memory:
        y = model(x)

    assert (
        memory.saved_bytes == 4 * 10 * 4 + 4 * 20 * 4
    )  # the input of each Linear; ReLU saves its output, the same storage
    assert y.shape == (4, 5)


def test_a_16_bit_copy_of_a_weight_is_saved_for_backward() -> None:
    layer = nn.Linear(8, 8, bias=False)
    x = torch.zeros(2, 8, requires_grad=True)

    with meter() as memory, torch.autocast("cpu", torch.bfloat16):
        y = layer(x)

    assert memory.saved_bytes == 2 * 8 * 2 + 8 * 8 * 2
    assert y.dtype is torch.bfloat16


def test_each_step_saves_anew_although_addresses_are_used_again() -> None:
    layer, x = nn.Linear(64, 64), torch.zeros(32, 64)

    with meter() as memory:
        for _ in range(5):
            torch.sigmoid(layer(x)).sum().backward()

    assert memory.saved_bytes == 32 * 64 * 4 + 5 * (
        32 * 64 * 4
    )  # x is one storage, the output of sigmoid a new one each step


@pytest.mark.usefixtures("no_collector")
def test_the_meter_keeps_no_graph_alive() -> None:
    layer, x = nn.Linear(64, 64), torch.zeros(32, 64)

    with meter() as memory:
        y = torch.relu(layer(x))
        live_with_graph = memory.live_bytes
        del y

    assert live_with_graph == 32 * 64 * 4
    assert memory.live_bytes == 0


def test_gradients_under_the_meter_are_what_they_are_without() -> None:
    x = torch.linspace(-1, 1, 8, requires_grad=True)

    def second_derivative() -> torch.Tensor:
        (slope,) = torch.autograd.grad(torch.tanh(x * x).sum(), x, create_graph=True)
        return torch.autograd.grad(slope.sum(), x)[0]

    with meter():
        found = second_derivative()

    assert torch.equal(found, second_derivative())


def test_the_peak_can_begin_anew() -> None:
    with meter() as memory:
        torch.zeros(1024)
        kept = torch.zeros(128)
        memory.reset_peak()
        torch.zeros(256)

    assert memory.peak_bytes == 512 + 1024
    assert kept.sum() == 0


def test_a_timeline_has_a_point_for_every_change_in_the_block() -> None:
    lab = Recorder()
    with meter(timeline=True, lab=lab):
        a = torch.zeros(250_000)
        b = a + a
        del a
    del b

    assert lab.points == [(1, 1_000_448), (2, 2_000_896), (3, 1_000_448)]


def test_a_block_that_ends_well_is_recorded() -> None:
    lab = Recorder()
    with meter(lab=lab):
        kept = torch.zeros(128)

    (event,) = lab.events
    assert event.values == {
        "peak_bytes": 512.0,
        "live_bytes": 512.0,
        "saved_bytes": 0.0,
        "operators": 1.0,
    }
    assert kept.sum() == 0


def test_sparse_tensors_pass_through() -> None:
    with meter() as memory:
        torch.eye(3).to_sparse()

    assert memory.operators > 1


def test_on_a_box_with_gpus_work_on_the_cpu_asks_none_of_them(unused_cuda: "FakeCuda") -> None:
    """Others may have all of their memory: even to wait for one would take some, or fail."""
    with meter() as memory:
        torch.zeros(128)

    assert unused_cuda.initialised_by == ""
    assert memory.cuda_peak_bytes is None


def test_what_a_gpu_holds_is_told_with_what_it_held_before(cuda: "FakeCuda") -> None:
    lab = Recorder()
    cuda.gpus[0].allocate(1000)
    cuda.gpus[0].allocate(-600)
    with meter(lab=lab):
        cuda.gpus[0].allocate(3 << 20, asked=(2 << 20) + 1)
        cuda.gpus[0].allocate(-(3 << 20), asked=-(2 << 20) - 1)

    (event,) = lab.events
    assert {name: value for name, value in event.values.items() if name.startswith("cuda")} == {
        "cuda_before_bytes": 400.0, "cuda_peak_bytes": 400.0 + (3 << 20), "cuda_reserved_bytes": float(4 << 20),
        "cuda_requested_bytes": 401.0 + (2 << 20),
    }  # fmt: skip


def test_an_allocator_that_does_not_count_what_it_was_asked_for_is_no_zero(
    cuda: "FakeCuda",
) -> None:
    cuda.counts_asked = False
    with meter() as memory:
        cuda.gpus[0].allocate(512)

    assert (memory.cuda_peak_bytes, memory.cuda_requested_bytes) == (512, None)
    assert "cuda_requested_bytes" not in memory.values()


def test_the_gpu_that_the_scenario_uses_is_asked(cuda: "FakeCuda") -> None:
    with Memory(Recorder(), "block", "", None, False, torch.device("cuda:1")) as memory:
        cuda.gpus[1].allocate(512)

    assert (memory.cuda_before_bytes, memory.cuda_peak_bytes) == (0, 512)


def test_a_gpu_that_only_has_a_context_holds_nothing_to_tell_of(cuda: "FakeCuda") -> None:
    with meter() as memory:
        torch.zeros(128)

    assert cuda.is_initialized()
    assert memory.cuda_peak_bytes is None


def test_a_gpu_that_begins_in_the_block_held_nothing_before(unused_cuda: "FakeCuda") -> None:
    with meter() as memory:
        unused_cuda.work(1000)
        unused_cuda.gpus[0].allocate(512)

    assert unused_cuda.initialised_by == "a kernel"
    assert (memory.cuda_before_bytes, memory.cuda_peak_bytes, memory.cuda_reserved_bytes) == (
        0,
        512,
        2 << 20,
    )


def test_the_first_error_is_not_hidden_by_what_the_gpu_says_after_it(cuda: "FakeCuda") -> None:
    """After an assertion on the device every call raises the same sentence."""
    with pytest.raises(IndexError, match="of the scenario"), meter():
        cuda.broken = "CUDA error: device-side assert triggered"
        raise IndexError("of the scenario")


DYNAMO = """
import sys, torch
sys.path.insert(0, {tests!r})
from test_meters import meter
assert "torch._dynamo" not in sys.modules
def count():
    with meter() as memory:
        torch.nn.Linear(4, 4)(torch.zeros(2, 4)).sum().backward()
    return memory.values()
alone = count()
assert "torch._dynamo" not in sys.modules, "the meter imported Dynamo"
import torch._dynamo
from torch._dynamo.utils import counters
assert count() == alone
squared = torch.compile(torch.square, backend="eager")
with meter():
    squared(torch.zeros(3))
assert not counters["frames"], "Dynamo compiled the meter"
"""


@pytest.mark.library
@pytest.mark.real_torch
def test_the_meter_neither_imports_dynamo_nor_is_compiled_by_it() -> None:
    script = DYNAMO.format(tests=__file__.rpartition("/")[0])

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
