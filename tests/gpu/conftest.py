"""Tests on a real GPU: `pytest -m gpu`. Without CUDA, each file is one skipped test with a reason.

All of it is one process beside those that it starts, on one GPU: the emptiest that works.
"""

import fcntl
import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.conftest import shown_gpus
from tests.gpu.page import Page

if TYPE_CHECKING:
    import torch

    from tuilab import Lab
    from tuilab.lab.device.cuda import Cuda
    from tuilab.probes.gpu.nvml import Gpus

ORDER = [
    f"test_gpu_{name}"
    for name in ("scenarios", "trust", "times", "log", "contexts", "failures", "nvml", "choice")
]
LAST = "test_the_page"
TRY_IT = """
from tuilab.lab.device import devices, torch_gpus
from tuilab.lab.device.choose_device import choose
print(devices.door(choose("cuda").device).uuid, torch_gpus.count())
"""


class CudaTrial(NamedTuple):
    """What came of trying CUDA in a process of its own."""

    why_not: str = ""
    uuid: str = ""  # torch's, of the emptiest GPU that works
    gpus: int = 0  # that torch sees


@functools.cache
def try_cuda() -> CudaTrial:
    done = subprocess.run(
        [sys.executable, "-c", TRY_IT], env=shown_gpus(), capture_output=True, text=True
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return CudaTrial(f"CUDA does not work here: {said[-1]}")
    uuid, count = done.stdout.split()[-2:]
    return CudaTrial("", uuid, int(count))


class NoGpu(pytest.Item):
    """Stands for all tests of a file that cannot run."""

    def runtest(self) -> None:
        raise AssertionError("it is marked to be skipped")

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class UnusableFile(pytest.Module):
    """A file whose tests cannot run: it is not even loaded."""

    def collect(self) -> Iterator[pytest.Item]:
        item = NoGpu.from_parent(self, name="gpu")
        item.add_marker(pytest.mark.skip(try_cuda().why_not))
        yield item


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    return UnusableFile.from_parent(parent, path=module_path) if try_cuda().why_not else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place)
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.real_torch)
            # A warning of torch on some machine is not a fault.
            item.add_marker(pytest.mark.filterwarnings("default"))


def _place(item: pytest.Item) -> int:
    """Return the place of a test: the most valuable first, in case time is short; the page last."""
    if Path(__file__).parent not in item.path.parents:
        return -1
    name = item.path.stem
    if name in ORDER:
        return ORDER.index(name)
    if name == LAST:
        return len(ORDER) + 1
    return len(ORDER)


@pytest.fixture(scope="session")
def page() -> Page:
    """What was seen; the last test writes it down."""
    return Page()


@pytest.fixture(scope="session", autouse=True)
def alone() -> Iterator[None]:
    """Of two sessions of tests on one GPU the second waits."""
    if try_cuda().why_not:
        yield
        return
    path = Path(tempfile.gettempdir()) / f"tuilab-tests-{os.getuid()}-{try_cuda().uuid}.lock"
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(autouse=True)
def one_gpu(surroundings: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test, and what it starts, sees one GPU where there are several."""
    if try_cuda().gpus > 1:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"GPU-{try_cuda().uuid.removeprefix('GPU-')}")


@pytest.fixture
def gpu() -> "Cuda":
    """The door to the GPU, which has been used by no other test."""
    from tuilab.lab.device.cuda import Cuda

    return Cuda(0)


@pytest.fixture(scope="session")
def gpus() -> "Gpus":
    """Start NVML once: it has open descriptors for each GPU, and a session should have few."""
    from tuilab.probes.gpu.nvml import open_gpus

    gpus = open_gpus()
    if isinstance(gpus, str):  # the reason
        pytest.skip(gpus)
    return gpus


@pytest.fixture
def device() -> "torch.device":
    import torch

    return torch.device("cuda", 0)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator["Lab"]:
    """The lab of a worker whose records are in `worker-0.jsonl`."""
    from tuilab import Lab
    from tuilab.engine import messages
    from tuilab.engine.messages import WorkerOrder
    from tuilab.engine.spawn import socket_pair
    from tuilab.record.journal.writer import Writer

    (tmp_path / "scenario.py").write_text('"""A lesson."""\n')
    ours, theirs = socket_pair()
    order = WorkerOrder(run_dir=str(tmp_path), writer="worker-0", source_dir=str(tmp_path))
    with ours, theirs, closing(Writer(tmp_path / "worker-0.jsonl")) as writer:
        yield Lab(writer, tmp_path, messages.WorkerLine(ours), order)
