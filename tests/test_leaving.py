"""How a worker leaves: at once, but in order where a profiler in it has something to write."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.engine import look, newest, write_scenario

Tuilab = Callable[..., "CompletedProcess[str]"]

LEAVE = """
import atexit, threading

def leave(lab, flushed, end):
    atexit.register(open, flushed, "w")
    if end:
        raise ValueError(end)
"""
# What is left over keeps an orderly exit from its end; it has the patience with that be over as soon as it begins.
STAYS = """
def stay():
    while not signal.getitimer(signal.ITIMER_REAL)[0]: time.sleep(0.01)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(600)

threading.Thread(target=stay).start()
"""


@pytest.mark.slow
def test_a_worker_with_a_profiler_in_it_leaves_in_order(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """Whether its part fails or not; each of these arms is a worker."""
    body = f"""
for name in ("NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH", "NOTHING"):
    for end in ("", "no good"):
        flushed = {str(tmp_path)!r} + f"/flushed {{name}} {{end}}"
        try: lab.arm(f"{{name}} {{end}}", leave, flushed, end, env={{name: "7"}})()
        except Exception as problem: lab.text(str(problem))
"""
    tuilab("run", str(write_scenario(tmp_path, body, LEAVE)), "--headless", "--quiet")

    summary = look(newest(root) or root).summary
    codes = {
        worker.started.arm: worker.exited.code
        for worker in summary.workers.values()
        if worker.started and worker.exited
    }
    profiled = ["CUDA_INJECTION64_PATH ", "CUDA_INJECTION64_PATH no good"]
    profiled += ["NSYS_PROFILING_SESSION_ID ", "NSYS_PROFILING_SESSION_ID no good"]
    assert codes == {
        "": 0,
        **{
            name: int(name.endswith("no good"))
            for name in [*profiled, "NOTHING ", "NOTHING no good"]
        },
    }
    told = [text.text for text in summary.texts]
    assert len(told) == 3 and all(one.endswith(" no good: ValueError: no good") for one in told)
    assert sorted(path.name for path in tmp_path.glob("flushed*")) == [
        f"flushed {name}" for name in profiled
    ]


@pytest.mark.faults
def test_a_worker_that_does_not_come_to_an_orderly_end_is_ended(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, STAYS, LEAVE)

    tuilab("run", str(path), "--headless", "--quiet", env={"NSYS_PROFILING_SESSION_ID": "7"})

    run_dir = newest(root)
    assert run_dir is not None
    assert (look(run_dir).summary.state, look(run_dir).summary.reason) == (
        "killed",
        "ended by SIGALRM",
    )


def test_fork_server_that_is_slow_to_leave_is_not_left_behind(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """torch makes it slow on a busy machine; here it would wait for an hour."""
    module = f"import atexit, time\nopen({str(tmp_path / 'loaded')!r}, 'w')\natexit.register(time.sleep, 3600)\n"
    (tmp_path / "slow_to_leave.py").write_text(module)
    body = f"""
import multiprocessing
os.environ["PYTHONPATH"] = {str(tmp_path)!r}  # the server of Python 3.11 takes no other path
multiprocessing.set_forkserver_preload(["slow_to_leave"])
child = multiprocessing.get_context("forkserver").Process(target=os.getpid)
child.start()
child.join()
lab.text(str(child.exitcode))
"""
    done = tuilab("run", str(write_scenario(tmp_path, body)), "--headless", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None
    summary = look(run_dir).summary
    assert [text.text for text in summary.texts] == ["0"]
    assert (tmp_path / "loaded").exists()
    assert (done.returncode, summary.leftovers) == (0, [])


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_multiprocessing_keeps_for_spawned_processes_ends_with_the_worker(
    tuilab: Tuilab, root: Path, tmp_path: Path, method: str
) -> None:
    """No process is told to be left behind, and no folder of theirs is."""
    body = f"""
import multiprocessing
context = multiprocessing.get_context({method!r})
kept = context.Lock()
child = context.Process(target=os.getpid)
child.start()
child.join()
lab.text(str(child.exitcode))
"""
    with tempfile.TemporaryDirectory() as folder:  # of a short name: there is a socket in it
        done = tuilab(
            "run",
            str(write_scenario(tmp_path, body)),
            "--headless",
            "--quiet",
            env={"TMPDIR": folder},
        )
        left = [name for name in os.listdir(folder) if name.startswith("pymp-")]

    run_dir = newest(root)
    assert run_dir is not None
    summary = look(run_dir).summary
    assert [text.text for text in summary.texts] == ["0"]
    assert (done.returncode, summary.leftover_count) == (0, 0)
    assert left == []
    assert (run_dir / "stderr.log").read_text() == ""
