"""What cannot be ended, because the kernel holds it: the run comes to its end all the same, and says what is left."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine import look, newest, processes_of, start, until, wait_for_stage, write_scenario
from tuilab.engine import processes
from tuilab.engine.slow_exits import is_doomed, is_exiting
from tuilab.judging.integrity import examine
from tuilab.record.summary import RunSummary

if TYPE_CHECKING:
    from tests.fakes.clock import Clock
    from tests.fakes.nvml import FakeNvml
    from tests.fakes.stuck_processes import StuckFile

pytest_plugins = ["tests.fakes.clock", "tests.fakes.nvml", "tests.fakes.stuck_processes"]
Serve = Callable[[str], "StuckFile"]
ENDED_BY_KERNEL = "the kernel still frees what it held, such as memory of a GPU"
IN_A_CALL = "in a call of the kernel that does not return"


def hold(driver: "StuckFile") -> str:
    """Return the lines of a scenario that are held by a driver: at once, or when its process ends."""
    return f'lab.stage("on")\nfd = os.open({driver.path!r}, os.O_RDONLY)\n'


def wait_for(go: Path) -> str:
    """Return the line of a scenario that waits for a file."""
    return f"while not os.path.exists({str(go)!r}): time.sleep(0.01)"


def wait_until_waited_for(root: Path) -> None:
    """Wait until it is on record that the kernel still ends a process of the run."""
    until(
        lambda: any(ENDED_BY_KERNEL in state.reason for state in look(run_of(root)).summary.states)
    )


def summary_of(root: Path) -> RunSummary:
    """Return the summary of a run that is over and whose record is whole."""
    assert examine(run_of(root)).wrong == []
    return look(run_of(root)).summary


def run_of(root: Path) -> Path:
    run_dir = newest(root)
    assert run_dir is not None
    return run_dir


@pytest.mark.slow
def test_a_sampler_that_cannot_die_is_left_and_the_run_keeps_its_end(
    root: Path, tmp_path: Path, nvml: "FakeNvml", stuck: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = stuck("opened")
    nvml.set("gpus=1", "mode=stuck", f"stuck={driver.path}")
    for name in ("LD_LIBRARY_PATH", "TUILAB_FAKE_NVML"):
        monkeypatch.setenv(name, nvml.environment[name])
    go = tmp_path / "go"
    path = write_scenario(tmp_path, wait_for(go))
    front = start(root, "run", str(path), "--headless", "--quiet")
    driver.wait_until_held()
    go.touch()

    out, _ = front.communicate(timeout=60)

    summary = summary_of(root)
    assert (front.returncode, summary.state, summary.reason) == (0, "succeeded", "")
    assert summary.unavailable["sampler"].startswith("could not be ended: ")
    assert IN_A_CALL in summary.unavailable["sampler"]
    assert "could not be ended: " in out


@pytest.mark.faults
def test_a_run_ends_although_its_worker_cannot_be_killed_and_names_it(
    root: Path, tmp_path: Path, stuck: Serve
) -> None:
    driver = stuck("opened")
    front = start(root, "run", str(write_scenario(tmp_path, hold(driver))), "--headless", "--quiet")
    driver.wait_until_held()
    (worker,) = look(run_of(root)).summary.workers.values()
    assert worker.started is not None
    subprocess.run(
        [sys.executable, "-m", "tuilab", "stop", "last", "--now"],
        env={**os.environ, "TUILAB_ROOT": str(root)},
    )

    front.communicate(timeout=60)

    summary = summary_of(root)
    assert summary.state == "unkillable"
    assert summary.reason.startswith(f"could not be ended: {worker.started.pid} ")
    assert "tuilab.lab.worker" in summary.reason and summary.reason.endswith(f"({IN_A_CALL})")


@pytest.mark.faults
def test_a_run_ends_although_a_thread_of_its_worker_never_comes_back(
    root: Path, tmp_path: Path, stuck: Serve
) -> None:
    driver = stuck("opened")
    go = tmp_path / "go"
    body = f"threading.Thread(target=os.open, args=[{driver.path!r}, os.O_RDONLY], daemon=True).start()\n{wait_for(go)}"
    front = start(
        root,
        "run",
        str(write_scenario(tmp_path, body, "import threading")),
        "--headless",
        "--quiet",
    )
    driver.wait_until_held()
    go.touch()

    front.communicate(timeout=60)

    summary = summary_of(root)
    assert summary.state == "unkillable"
    assert summary.reason.startswith("could not be ended: ") and summary.reason.endswith(
        f"({IN_A_CALL})"
    )


@pytest.mark.faults
def test_an_arm_that_cannot_be_killed_is_answered_for(
    root: Path, tmp_path: Path, stuck: Serve, clock: "Clock"
) -> None:
    driver = stuck("opened")
    body = 'try: lab.arm("held", held, timeout=600)()\nexcept Exception as problem: lab.text(str(problem))'
    path = write_scenario(
        tmp_path, body, f"def held(lab):\n    os.open({driver.path!r}, os.O_RDONLY)\n"
    )

    front = start(root, "run", str(path), "--headless", "--quiet")
    driver.wait_until_held()
    clock.put_forward(600)

    front.communicate(timeout=90)

    summary = summary_of(root)
    (text,) = summary.texts
    assert "timed out after 600 s" in text.text and "could not be ended" in text.text
    assert summary.state == "unkillable"


@pytest.mark.faults
def test_a_worker_that_the_kernel_takes_long_to_tear_down_is_waited_for(
    root: Path, tmp_path: Path, stuck: Serve
) -> None:
    driver = stuck("closed")
    front = start(root, "run", str(write_scenario(tmp_path, hold(driver))), "--headless")
    driver.wait_until_held()
    wait_until_waited_for(root)

    driver.let_go()
    _, told = front.communicate(timeout=60)

    summary = summary_of(root)
    assert (front.returncode, summary.state, summary.reason) == (0, "succeeded", "")
    assert "waits for " in told and ENDED_BY_KERNEL in told
    assert processes_of(run_of(root)) == []


@pytest.mark.faults
@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_worker_whose_teardown_hangs_is_given_up(
    root: Path, tmp_path: Path, stuck: Serve, clock: "Clock", is_stopped: bool
) -> None:
    driver = stuck("closed")
    body = hold(driver) + ("time.sleep(600)" if is_stopped else "")
    front = start(
        root, "run", str(write_scenario(tmp_path, body)), "--headless", "--quiet", "--repeat", "3"
    )
    wait_for_stage(root, "on")
    if is_stopped:
        subprocess.run(
            [sys.executable, "-m", "tuilab", "stop", "last"],
            env={**os.environ, "TUILAB_ROOT": str(root)},
        )
    driver.wait_until_held()
    wait_until_waited_for(root)
    clock.put_forward(60)

    front.communicate(timeout=60)

    summary = summary_of(root)
    assert summary.state == "unkillable"
    assert "could not be ended: " in summary.reason and summary.reason.endswith(
        f"({ENDED_BY_KERNEL})"
    )
    assert len(summary.workers) == 1


def test_a_process_is_exiting_when_only_the_kernel_is_still_at_it(stuck: Serve) -> None:
    held, ending = stuck("opened"), stuck("closed")
    opening, closing = (
        subprocess.Popen([sys.executable, "-c", f"import os; os.open({one.path!r}, os.O_RDONLY)"])
        for one in (held, ending)
    )
    held.wait_until_held()
    ending.wait_until_held()
    opening.kill()

    assert [is_exiting(pid) for pid in (opening.pid, closing.pid, os.getpid())] == [
        False,
        True,
        False,
    ]
    assert [is_doomed(pid) for pid in (opening.pid, closing.pid, os.getpid())] == [
        True,
        True,
        False,
    ]
    (name,) = processes.names_of(lambda: [closing.pid])
    assert re.sub("python[0-9.]*", "python", name) == f"{closing.pid} [python] ({ENDED_BY_KERNEL})"

    held.let_go()
    ending.let_go()
    assert (opening.wait(), closing.wait()) == (-9, 0)
    assert not is_exiting(closing.pid)
