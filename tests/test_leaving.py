"""How a worker leaves: at once, but in order where a profiler in it has something to write."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.engine import look, newest, write_scenario

Tuilab = Callable[..., "CompletedProcess[str]"]


@pytest.mark.parametrize("name", ["NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH", "NOTHING"])
@pytest.mark.parametrize("end", ["", 'raise ValueError("no good")'])
def test_a_worker_with_a_profiler_in_it_leaves_in_order(
    tuilab: Tuilab, root: Path, tmp_path: Path, name: str, end: str
) -> None:
    flushed = tmp_path / "flushed"
    path = write_scenario(tmp_path, f"import atexit\natexit.register(open, {str(flushed)!r}, 'w')\n{end}")

    done = tuilab("run", str(path), "--headless", "--quiet", env={name: "7"})

    assert done.returncode == (4 if end else 0), done.stdout
    assert flushed.exists() is (name != "NOTHING")


@pytest.mark.faults
@pytest.mark.timeout(180)
def test_a_worker_that_does_not_come_to_an_orderly_end_is_ended(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    path = write_scenario(tmp_path, "import threading\nthreading.Thread(target=time.sleep, args=[600]).start()")

    tuilab("run", str(path), "--headless", "--quiet", env={"NSYS_PROFILING_SESSION_ID": "7"})

    run_dir = newest(root)
    assert run_dir is not None
    assert (look(run_dir).summary.state, look(run_dir).summary.reason) == ("killed", "ended by SIGALRM")
