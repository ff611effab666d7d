"""Who takes memory of a GPU: nobody whom it does not concern, and nobody after the end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.engine import look, start, until, wait_for_stage, write_scenario
from tuilab.engine import launch
from tuilab.probes.gpu.free_memory import free_bytes
from tuilab.probes.gpu.nvml import Gpus
from tuilab.probes.gpu.tenants import why_pids_mean_nothing
from tuilab.record import presence
from tuilab.record.gpus.raced_gpu import nvml_uuid

if TYPE_CHECKING:
    from tests.gpu.page import Page
    from tuilab.lab.device.cuda import Cuda

Tuilab = Callable[..., "CompletedProcess[str]"]
Result = Callable[..., dict[str, Any]]

HELD = 'sorted({os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")})'
WARM = f"""
import os
from tuilab.lab.worker import warm_up
warm_up(["torch.nn", "torch.utils.data"])
import torch
print(torch.cuda.is_initialized(), [path for path in {HELD} if "nvidia" in path])
"""
ON_THE_CPU = f"""
device = lab.device("cpu")
x = torch.ones(1000, device=device)
with lab.memory("block"):
    (x * 2).sum()
lab.race(one=lambda: x + 1, two=lambda: x + 2, seconds=0.2)
lab.log(0, loss=x.sum())
lab.claim("no-context-is-made", torch.cuda.is_initialized(), equals=False)
lab.claim("no-file-of-the-driver-is-open", [path for path in {HELD} if "nvidia" in path], equals=[])
"""
COMPUTES = """
device = lab.device("cuda")
held = torch.ones(4 << 30, dtype=torch.uint8, device=device)
torch.cuda._sleep(2 * 10**10)
lab.stage("asleep")
torch.cuda.synchronize()
"""


def free_on(gpu: "Cuda") -> int:
    known = free_bytes()
    return known[nvml_uuid(gpu.uuid, known)]


def computing(gpus: Gpus) -> set[int]:
    """Return the pids of all that compute on a GPU."""
    return {one.pid for gpu in gpus.available for one in gpus.tenants(gpu)}


@contextmanager
def going_on(root: Path, scenario: Path) -> Iterator[Path]:
    """Start a scenario, yield the folder of its run when it has entered the stage `asleep`, and stop it at once."""
    with start(root, "run", str(scenario), "--headless", "--quiet") as front:
        try:
            run_dir = wait_for_stage(root, "asleep")
            yield run_dir
            launch.stop(run_dir, at_once=True)
        except BaseException:
            front.send_signal(signal.SIGINT)
            front.send_signal(signal.SIGINT)
            raise
        front.communicate(timeout=120)


def test_a_worker_that_waits_has_not_touched_the_gpu() -> None:
    done = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True)

    assert done.stdout == "False []\n", done.stderr


def test_a_run_on_the_cpu_does_not_touch_the_gpu(result: Result, tmp_path: Path) -> None:
    run = result(str(write_scenario(tmp_path, ON_THE_CPU, "import torch\n")))

    assert run["state"] == "succeeded", run["reason"]
    assert run["verdicts"] == {
        "no context is made": "SUPPORTED",
        "no file of the driver is open": "SUPPORTED",
    }


def test_no_process_of_a_run_on_the_cpu_computes_on_a_gpu(
    root: Path, tmp_path: Path, gpus: Gpus
) -> None:
    if why := why_pids_mean_nothing():
        pytest.skip(why)
    body = 'lab.device("cpu")\nlab.stage("asleep")\ntime.sleep(600)'
    with going_on(root, write_scenario(tmp_path, body)) as run_dir:
        ours = {pid for pid, _ in presence.marked(run_dir.name)}
        found = computing(gpus)

    assert ours and not ours & found


def test_the_memory_of_a_worker_that_is_stopped_in_a_kernel_comes_back(
    root: Path, tmp_path: Path, gpu: "Cuda", page: "Page"
) -> None:
    torch.zeros(1, device="cuda")
    before = free_on(gpu)
    with going_on(root, write_scenario(tmp_path, COMPUTES, "import torch\n")) as run_dir:
        until(lambda: before - free_on(gpu) > 4 << 30)
        taken = before - free_on(gpu)

    seen = look(run_dir)
    page.note("contexts", "a worker with 4 GiB of tensors takes", f"{taken / 2**30:.2f} GiB")
    page.note(
        "contexts",
        "one in a kernel, stopped at once",
        f"{seen.state}; left over: {seen.summary.leftovers}",
    )
    assert seen.summary.is_over and seen.summary.leftovers == []
    until(lambda: abs(before - free_on(gpu)) < 256 << 20)


def test_what_a_context_takes_is_known(gpu: "Cuda", page: "Page") -> None:
    """Of a process that has done nothing but the first kernel."""
    hold = 'import torch, sys; torch.zeros(1, device="cuda").add_(1).item(); print("held", flush=True); sys.stdin.read()'
    before = free_on(gpu)
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        taken = before - free_on(gpu)
    page.note("contexts", "a context takes", f"{taken / 2**20:.0f} MiB")

    assert 50 << 20 < taken < 4 << 30
    until(lambda: abs(before - free_on(gpu)) < 128 << 20)


def test_these_tests_are_seen_where_pids_are_those_of_the_driver(gpus: Gpus, page: "Page") -> None:
    torch.zeros(1, device="cuda")
    found = computing(gpus)
    page.note("contexts", "pids that NVML lists", sorted(found))
    if why := why_pids_mean_nothing():
        page.note("contexts", "pids", why)
        pytest.skip(why)

    assert os.getpid() in found
