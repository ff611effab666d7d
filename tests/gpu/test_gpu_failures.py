"""Runs that fail on a real GPU: what failed first is told, with a hint, and what was logged before is there."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import torch

from tests.engine import look, newest, processes_of, read_stream, write_scenario
from tuilab.judging.integrity import examine
from tuilab.record.events import Logged, ScenarioFailed
from tuilab.record.states import RunState

Tuilab = Callable[..., "CompletedProcess[str]"]

BEGIN = """
device = lab.device("cuda")
value = torch.zeros((), device=device)
for step in range(50):
    lab.log(step, loss=value.add_(1))
"""
ALL_CAME = "torch.cuda.synchronize()\n"
ASSERTS = "torch.zeros(4, device=device)[torch.tensor([9], device=device)]\n"
WAIT = "torch.cuda.synchronize()\n"
ILLEGAL = """
source = "__global__ void spoil(float* values) { values[1ull << 40] = 1; }"
spoil = torch.cuda._compile_kernel(source, "spoil")
spoil(grid=(1, 1, 1), block=(1, 1, 1), args=[torch.zeros(4, device=device)])
"""
FULL = """
torch.cuda.set_per_process_memory_fraction(0.05, device)
held = [torch.empty(1 << 30, dtype=torch.uint8, device=device) for _ in range(1000)]
"""


def failed(tuilab: Tuilab, root: Path, tmp_path: Path, body: str) -> tuple[Path, ScenarioFailed]:
    """Run the body of a scenario, which is to fail, and return its folder and its failure."""
    tuilab("run", str(write_scenario(tmp_path, body, "import torch\n")), "--headless", "--quiet")
    run_dir = newest(root)
    assert run_dir is not None
    seen = look(run_dir)
    assert seen.state == RunState.FAILED
    assert seen.summary.failure is not None, seen.summary.reason
    assert not processes_of(run_dir)
    return run_dir, seen.summary.failure


def steps(run_dir: Path) -> list[int]:
    return [
        item.s
        for item in read_stream(run_dir / "journal" / "worker-0.jsonl")
        if isinstance(item, Logged)
    ]


def test_a_gpu_that_is_full_fails_the_run_with_a_hint_and_an_account(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    run_dir, failure = failed(tuilab, root, tmp_path, BEGIN + FULL)

    assert failure.type == "OutOfMemoryError"
    assert failure.hint.startswith("the GPU has no memory left")
    assert steps(run_dir) == [*range(50)]
    assert examine(run_dir).wrong == []
    assert [path.name for path in (run_dir / "artifacts").glob("*memory*")] != []


def test_an_assertion_in_a_kernel_is_told_with_a_hint(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    run_dir, failure = failed(tuilab, root, tmp_path, BEGIN + ALL_CAME + ASSERTS + WAIT)

    assert "device-side assert" in failure.message
    assert failure.hint.startswith("an index or label is out of range in a kernel")
    assert steps(run_dir) == [*range(50)]
    assert examine(run_dir).wrong == []


def test_a_kernel_that_leaves_its_memory_is_told_with_a_hint(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    if not hasattr(torch.cuda, "_compile_kernel"):
        pytest.skip("this torch compiles no kernels")
    run_dir, failure = failed(tuilab, root, tmp_path, BEGIN + ALL_CAME + ILLEGAL + WAIT)

    assert "illegal memory access" in failure.message
    assert failure.hint.startswith("a kernel used memory that is not its own")
    assert steps(run_dir) == [*range(50)]


def test_the_first_error_is_told_though_the_gpu_answers_nothing_any_more(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    block = f'with lab.memory("block"):\n    {ASSERTS}    time.sleep(1)\n    raise ValueError("the first")'

    run_dir, failure = failed(tuilab, root, tmp_path, BEGIN + ALL_CAME + block)

    assert (failure.type, failure.message) == ("ValueError", "the first")
    assert steps(run_dir) == [*range(50)]


def test_what_a_gpu_that_failed_had_not_computed_is_counted(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    later = """
weights, index = torch.zeros(4, device=device), torch.tensor([9], device=device)
torch.cuda._sleep(10**9)
weights[index]
for step in range(50, 70):
    lab.log(step, loss=value.add_(1))
raise ValueError("boom")
"""
    run_dir, failure = failed(tuilab, root, tmp_path, BEGIN + ALL_CAME + later)

    lost = look(run_dir).summary.damage.lost_count
    assert failure.message == "boom"
    assert (steps(run_dir), lost) == ([*range(50)], 20)
    assert examine(run_dir).wrong == ["20 records could not be written"]
