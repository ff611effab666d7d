"""Runs that end while values are still on a GPU: those that come are written, and of the others one is told how many."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CHECKOUT
from tests.engine import look, newest, read_stream, start, until, wait_for_stage, write_scenario
from tuilab.judging.integrity import examine
from tuilab.record import held_back_records
from tuilab.record.events import Logged
from tuilab.record.states import RunState

if TYPE_CHECKING:
    from tests.fakes.clock import Clock

pytest_plugins = ["tests.fakes.clock"]
Tuilab = Callable[..., "CompletedProcess[str]"]

LOG = f"""
sys.path.insert(0, {str(CHECKOUT)!r})
import pytest, torch
from tests.fakes.late_cuda import install
cuda = install(pytest.MonkeyPatch())
gpu = cuda.gpus[0]
gpu.pace = 0
for step in range(100):
    lab.log(step, loss=cuda.tensor(float(step)))
"""
GOES_ON = "gpu.pace = 1\n"
COMPUTES_40 = "gpu.current.get_on(80)\n"  # a copy and an event each
SLEEP = 'lab.stage("asleep")\ntime.sleep(600)'

pytestmark = pytest.mark.real_torch


def steps(run_dir: Path) -> list[int]:
    return [
        item.s
        for item in read_stream(run_dir / "journal" / "worker-0.jsonl")
        if isinstance(item, Logged)
    ]


def complaint(count: int) -> str:
    return f"{count} records could not be written"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ('raise ValueError("boom")', "ValueError: boom"),
        ("sys.exit(3)", "the scenario called sys.exit(3)"),
        ('lab.needs(False, "a second GPU")', "not testable here: a second GPU"),
        ("pass", ""),
    ],
)
def test_what_comes_is_brought_over_however_a_scenario_ends(
    tuilab: Tuilab, root: Path, tmp_path: Path, end: str, reason: str
) -> None:
    tuilab("run", str(write_scenario(tmp_path, LOG + GOES_ON + end)), "--headless", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None
    assert steps(run_dir) == list(range(100))
    assert look(run_dir).summary.reason == reason
    assert examine(run_dir).wrong == []
    assert held_back_records.left(run_dir) == {}


@pytest.mark.slow
def test_what_a_gpu_that_failed_had_not_computed_is_counted_beside_the_first_error(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    fail = 'gpu.fail("CUDA error: device-side assert triggered")\n'
    body = LOG + COMPUTES_40 + fail + 'lab.stage("next")\nraise ValueError("boom")'

    done = tuilab("run", str(write_scenario(tmp_path, body)), "--headless", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None
    assert steps(run_dir) == list(range(40))
    summary = look(run_dir).summary
    assert (summary.reason, summary.damage.lost_count) == ("ValueError: boom", 60)
    assert examine(run_dir).wrong == [complaint(60)]
    assert "60 measured records: not written" in done.stdout
    assert complaint(60) in tuilab("verify", "last").stdout


@pytest.mark.slow
def test_a_run_that_succeeds_but_for_its_values_fails(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    body = LOG + COMPUTES_40 + 'gpu.fail("CUDA error: out of memory")\n'

    done = tuilab("run", str(write_scenario(tmp_path, body)), "--headless", "--json", "--quiet")

    (run,) = json.loads(done.stdout)["runs"]
    assert (run["state"], run["reason"]) == (
        "failed",
        f"{complaint(60)}: CUDA error: out of memory",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "written"), [(GOES_ON, 100), (COMPUTES_40, 40)], ids=["goes on", "hangs"]
)
def test_a_stop_waits_for_what_comes_and_counts_the_rest(
    tuilab: Tuilab, root: Path, tmp_path: Path, more: str, written: int
) -> None:
    front = start(
        root, "run", str(write_scenario(tmp_path, LOG + more + SLEEP)), "--headless", "--quiet"
    )
    run_dir = wait_for_stage(root, "asleep")
    front.send_signal(signal.SIGINT)
    front.communicate(timeout=60)

    assert steps(run_dir) == list(range(written))
    summary = look(run_dir).summary
    assert (summary.state, summary.damage.lost_count) == (RunState.STOPPED, 100 - written)
    assert examine(run_dir).wrong == ([complaint(100 - written)] if written < 100 else [])
    assert held_back_records.left(run_dir) == {}


@pytest.mark.slow
def test_a_kill_leaves_the_count_of_what_was_on_the_gpu(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    body = LOG + COMPUTES_40 + 'lab.stage("next")\nos.kill(os.getpid(), signal.SIGKILL)'

    tuilab("run", str(write_scenario(tmp_path, body)), "--headless", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None
    assert steps(run_dir) == list(range(40))
    assert look(run_dir).summary.damage.lost_count == 60
    assert examine(run_dir).wrong == [complaint(60)]


@pytest.mark.slow
def test_a_time_out_waits_for_what_comes(
    tuilab: Tuilab, root: Path, tmp_path: Path, clock: "Clock"
) -> None:
    path = write_scenario(tmp_path, LOG + GOES_ON + clock.putting_forward(600) + SLEEP)

    tuilab("run", str(path), "--headless", "--quiet", "--timeout", "600")

    run_dir = newest(root)
    assert run_dir is not None
    assert look(run_dir).summary.reason == "timed out after 600 s"
    assert steps(run_dir) == list(range(100))
    assert examine(run_dir).wrong == []


@pytest.mark.slow
def test_an_arm_that_takes_too_long_leaves_its_count(
    tuilab: Tuilab, root: Path, tmp_path: Path, clock: "Clock"
) -> None:
    lines = LOG + COMPUTES_40 + clock.putting_forward(600) + SLEEP
    more = "def body(lab):\n" + "".join(f"    {line}\n" for line in lines.strip().splitlines())
    body = 'try:\n    lab.arm("slow", body, timeout=600)()\nexcept Exception as problem:\n    lab.text(str(problem))'

    tuilab("run", str(write_scenario(tmp_path, body, more)), "--headless", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None
    assert [text.text for text in look(run_dir).summary.texts] == ["slow: timed out after 600 s"]
    assert examine(run_dir).wrong == [complaint(60)]


@pytest.mark.slow
def test_what_a_lost_run_held_back_is_told(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    front = start(root, "run", str(write_scenario(tmp_path, LOG + SLEEP)), "--headless", "--quiet")
    run_dir = wait_for_stage(root, "asleep")
    run = look(run_dir).summary.run
    assert run is not None
    os.kill(run.supervisor.pid, signal.SIGKILL)
    front.communicate(timeout=60)
    until(lambda: look(run_dir).state == RunState.LOST)

    assert (
        "worker-0: 100 records with values from a GPU could not be written"
        in examine(run_dir).wrong
    )
