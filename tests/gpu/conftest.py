"""What runs on a real GPU: `pytest -m gpu`. Where CUDA does not work each file is one skipped test, which says why."""

import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import shown_gpus

TRY_IT = "import torch; assert torch.zeros(1, device='cuda').add_(1).item() == 1"


@functools.cache
def why_no_gpu() -> str:
    """Return why CUDA cannot be used, or nothing; it is tried in a process of its own."""
    tried = subprocess.run([sys.executable, "-c", TRY_IT], env=shown_gpus(), capture_output=True, text=True)
    said = tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"]
    return f"CUDA does not work here: {said[-1]}" if tried.returncode else ""


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
        item.add_marker(pytest.mark.skip(why_no_gpu()))
        yield item


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return UnusableFile.from_parent(parent, path=module_path) if why_no_gpu() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.real_torch)
