"""What the lab times on a GPU, held against kernels of a known length."""

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import torch

from tests.conftest import CHECKOUT, shown_gpus
from tests.gpu.kernels import busy, cycles_per_us, each, warm_up
from tuilab.lab.races.race import gpu_ns
from tuilab.lab.races.timing import Timed, calibrate, time_block

if TYPE_CHECKING:
    from tests.gpu.page import Page
    from tuilab.lab.device.cuda import Cuda

US = 1_000
SHEET_TFLOPS = {  # by words of the name, of bfloat16 without sparsity
    "H200": 989, "H100 PCIe": 756, "H100": 989, "GH200": 989, "B200": 2250, "A100": 312,
    "L40S": 362, "L40": 181, "L4": 121, "4090 Laptop": 80, "4090": 165,
}  # fmt: skip
BOOST = 1.1  # a card may clock higher than its sheet says
ON_THE_SECOND = """
import torch
from tests.gpu.kernels import cycles_per_us
from tuilab.lab.device.cuda import Cuda
from tuilab.lab.races.timing import time_block
with torch.cuda.device(1):
    cycles = round(500 * cycles_per_us())
def call():
    with torch.cuda.device(1):
        torch.cuda._sleep(cycles)
time_block(call, 20, Cuda(1))
print(time_block(call, 200, Cuda(1)).wall_ns / 200 / 1000)
"""

COMPILED = """
import torch
from tuilab.lab.device.cuda import Cuda
from tuilab.lab.races.timing import calibrate, time_block
x = torch.randn(8192, 8192, device="cuda")
compiled = torch.compile(lambda x: (x.sin() + x.cos()).relu().sum(), mode="reduce-overhead")
for _ in range(4):  # it is compiled, then recorded as a graph
    compiled(x)
loops = calibrate(lambda: compiled(x), Cuda(0)).loops
timed = time_block(lambda: compiled(x), loops, Cuda(0))
print(timed.wall_ns / loops / 1000, timed.stream_ns / loops / 1000)
"""


def block_of(call: Callable[[], object], gpu: "Cuda") -> tuple[Timed, int]:
    """Return a block of a function at its own pace, and its calls."""
    loops = calibrate(call, gpu).loops
    return time_block(call, loops, gpu), loops


def step_us(call: Callable[[], object], gpu: "Cuda") -> float:
    timed, loops = block_of(call, gpu)
    return timed.wall_ns / loops / US


def share_of(call: Callable[[], object], gpu: "Cuda", page: "Page", name: str) -> float:
    """Return the share of the time of a call that the GPU works at most."""
    pace = calibrate(call, gpu)
    gpu.make_ready()
    share = (gpu_ns(call, pace.step_s, gpu) or 0) / (pace.step_s * 1e9)
    page.note("times: share of a call that the GPU works at most", name, f"{share:.3f}")
    return share


@pytest.mark.parametrize("us", [100, 500, 1_000, 10_000, 100_000])
def test_a_step_takes_what_its_kernel_takes(gpu: "Cuda", page: "Page", us: float) -> None:
    found = step_us(each(us), gpu)
    page.note("times: one kernel, and what a step took", f"{us:g} us", f"{found:.2f} us")

    assert found == pytest.approx(us, rel=0.05, abs=5)


def test_a_step_of_short_kernels_is_launch_bound(
    gpu: "Cuda", device: torch.device, page: "Page"
) -> None:
    small = torch.zeros(16, device=device)

    def call() -> None:
        for _ in range(20):
            small.add_(1)

    timed, loops = block_of(call, gpu)
    page.note(
        "times",
        "one small operator, submitted",
        f"{(timed.submitted_ns or 0) / loops / 20 / US:.2f} us",
    )
    page.note("times", "one small operator, done", f"{timed.wall_ns / loops / 20 / US:.2f} us")

    assert (timed.submitted_ns or 0) / timed.wall_ns > 0.9
    assert share_of(call, gpu, page, "20 small operators") < 0.9


def test_what_happens_seldom_is_part_of_a_step(gpu: "Cuda") -> None:
    usual, seldom, calls = each(100), each(5_100), [0]

    def call() -> None:
        calls[0] += 1
        (usual if calls[0] % 10 else seldom)()

    time_block(call, 50, gpu)

    assert time_block(call, 500, gpu).wall_ns / 500 / US == pytest.approx(600, rel=0.05)


def test_work_on_a_side_stream_is_waited_for(gpu: "Cuda", page: "Page") -> None:
    side, kernel = torch.cuda.Stream(), each(500)

    def call() -> None:
        with torch.cuda.stream(side):
            kernel()

    timed, loops = block_of(call, gpu)
    page.note("times", "500 us on a side stream, step", f"{timed.wall_ns / loops / US:.1f} us")

    assert timed.wall_ns / loops / US == pytest.approx(500, rel=0.05)
    assert (timed.stream_ns or 0) < timed.wall_ns / 2


def test_work_on_the_second_gpu_is_waited_for(page: "Page") -> None:
    environment = shown_gpus()
    count = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.cuda.device_count())"],
        env=environment,
        capture_output=True,
        text=True,
    )
    if count.stdout.strip() in ("0", "1"):
        pytest.skip("this box has no second GPU")
    done = subprocess.run(
        [sys.executable, "-c", ON_THE_SECOND],
        env=environment,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    page.note("times", "500 us on the second GPU, step", f"{float(done.stdout):.1f} us")
    assert float(done.stdout) == pytest.approx(500, rel=0.05)


def test_the_events_of_a_busy_stream_agree_with_the_wall_clock(
    gpu: "Cuda", device: torch.device, page: "Page"
) -> None:
    a = torch.randn(4096, 4096, device=device)
    timed, _ = block_of(lambda: a @ a, gpu)
    page.note("times", "matmul 4096 float32, wall / stream", timed.wall_ns / (timed.stream_ns or 1))

    assert timed.stream_ns == pytest.approx(timed.wall_ns, rel=0.02)
    assert share_of(lambda: a @ a, gpu, page, "matmul 4096 float32") > 0.95


def test_the_rate_of_a_large_product_is_one_that_the_gpu_can_have(
    gpu: "Cuda", device: torch.device, page: "Page"
) -> None:
    a = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    warm_up()
    rate = 2 * 8192**3 / step_us(lambda: a @ a, gpu) / 1e6
    name = torch.cuda.get_device_name(device)
    page.note("times", "matmul 8192 bfloat16", f"{rate:.0f} TFLOP/s")

    sheet = next(
        (
            rate
            for words, rate in SHEET_TFLOPS.items()
            if f" {words} " in f" {name} ".replace("-", " ")
        ),
        None,
    )
    if sheet is None or "MIG" in name:
        pytest.skip(f"no data sheet of {name} is at hand")
    assert 0.4 * sheet < rate < BOOST * sheet


def test_a_replayed_graph_takes_what_its_kernels_take(gpu: "Cuda", page: "Page") -> None:
    kernel = each(50)
    kernel()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            kernel()
    found = step_us(graph.replay, gpu)
    page.note("times", "a graph of 20 kernels of 50 us, step", f"{found:.1f} us")

    assert found == pytest.approx(
        1000, rel=0.08
    )  # a kernel begins a microsecond or so after the one before


def test_a_compiled_function_is_timed_like_any_other(page: "Page") -> None:
    if find_spec("triton") is None or not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("torch.compile wants triton and a C compiler")
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    wall_us, stream_us = map(float, done.stdout.split())
    page.note("times", "compiled with reduce-overhead, step", f"{wall_us:.1f} us")

    assert stream_us == pytest.approx(wall_us, rel=0.05)


def test_of_an_arm_that_gives_the_gpu_nothing_the_gpu_works_none_of_the_time(
    gpu: "Cuda", page: "Page"
) -> None:
    until_ns = 200 * US

    def call() -> None:
        began = time.perf_counter_ns()
        while time.perf_counter_ns() - began < until_ns:
            pass

    assert share_of(call, gpu, page, "200 us of the host") < 0.01


def test_a_call_that_waits_for_the_gpu_after_much_was_told_leaves_it_idle(
    gpu: "Cuda", device: torch.device, page: "Page"
) -> None:
    x, kernel = torch.ones(8, device=device), each(5_000)

    def telling() -> float:
        for _ in range(200):
            x.add_(0)
        return x.sum().item()

    def waiting() -> float:
        kernel()
        return x.sum().item()

    assert share_of(telling, gpu, page, "200 small operators and .item()") < 0.9
    assert share_of(waiting, gpu, page, "a kernel of 5 ms and .item()") > 0.95


def test_the_delay_of_the_lab_is_as_long_as_it_is_asked_to_be(gpu: "Cuda", page: "Page") -> None:
    warm_up()
    gpu.make_ready()
    found = statistics.median(
        time_block(lambda: gpu.delay(2_000_000, time.perf_counter_ns), 10, gpu).wall_ns / 10
        for _ in range(5)
    )
    page.note("times", "the lab's delay of 2 ms", f"{found / 1e6:.3f} ms")

    assert found == pytest.approx(2_000_000, rel=0.05)


def test_what_the_clock_of_events_resolves(page: "Page") -> None:
    busy(10)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(200)]
    for mark in marks:
        mark.record()
    torch.cuda.synchronize()
    gaps = [1000 * marks[0].elapsed_time(mark) for mark in marks[1:]]
    steps = sorted({round(late - early, 3) for early, late in pairwise(gaps)} - {0.0})
    page.note("times", "smallest steps of the clock of events, us", steps[:5])
    page.note("times", "the delay kernel, cycles a us", cycles_per_us())

    assert steps and min(steps) > 0 and max(gaps) < 1e5
