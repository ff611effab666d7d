"""Kills in the middle of a command: nothing of it outlives, and what it had marked until then is in the record."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine import look, newest, processes_of, start, until
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.commands.watcher._tuilab_watch.ring import Ring
from tuilab.record import events
from tuilab.record.journal.reader import Reader
from tuilab.record.summary import RunSummary
from tuilab.runs import store

pytestmark = pytest.mark.faults
Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]

# Steps as torch's would be marked, until they are told to make one more; a child of theirs has a session of its own.
STEPS = f"""
import os, subprocess, sys, time
sys.path.insert(0, {str(Path(layout.__file__).parents[1])!r})
from _tuilab_watch import layout
from _tuilab_watch.ring import Ring
ring = Ring(os.environ["TUILAB_WATCH"])
subprocess.Popen(["setsid", "sleep", "1000"])
ring.text(layout.NAME, "AdamW\\noptimizer 1", 1)
at = 0
def step():
    global at
    at += 1
    now = time.monotonic_ns()
    ring.mark(layout.WENT_BACK, now, now + 10, at / 2, 0, 0, layout.HAS_VALUE)
    ring.mark(layout.STEPPED, now + 10, now + 20, 0.0, 0, 1)
for _ in range(20):
    step()
print("begun", flush=True)
while not os.path.exists("more"):
    time.sleep(0.01)
for _ in range(7):
    step()
open("done", "w").close()
time.sleep(1000)
"""


@pytest.fixture
def begun(root: Path) -> "subprocess.Popen[str]":
    """A command that has marked 20 steps, all of which were recorded, and 7 more when its worker hangs."""
    Path("steps.py").write_text(STEPS)
    process = start(root, "exec", "--headless", "--", sys.executable, "steps.py")
    until(lambda: (run := newest(root)) and recorded(look(run).summary) == 20)
    os.kill(worker_of(root), signal.SIGSTOP)
    Path("more").touch()
    until(Path("done").exists)
    return process


def recorded(summary: RunSummary) -> int:
    return sum(series.count for series in summary.series.values() if series.name == "backward root")


def worker_of(root: Path) -> int:
    worker = look(store.find("last", root)).summary.workers["worker-0"].started
    assert worker
    return worker.pid


def roots_in(run_dir: Path) -> list[float]:
    """Return what went backward in each step, as the stream has it."""
    reader = Reader(run_dir / "journal" / "worker-0.jsonl")
    items = [item for portion in iter(reader.read, []) for item in portion]
    reader.close()
    return [
        item.v["backward root"]
        for item in items
        if isinstance(item, events.Logged) and "backward root" in item.v
    ]


def test_what_a_killed_worker_had_not_read_is_read_by_the_supervisor(
    tuilab: Tuilab, root: Path, begun: "subprocess.Popen[str]"
) -> None:
    os.kill(worker_of(root), signal.SIGKILL)
    begun.communicate(timeout=60)

    run_dir = store.find("last", root)
    seen = look(run_dir)
    assert (begun.returncode, seen.state) == (137, "killed")
    assert roots_in(run_dir) == [at / 2 for at in range(1, 28)]
    assert "7 steps were recorded after the end" in seen.summary.texts[-1].text
    assert processes_of(run_dir) == [] and not list(run_dir.glob("marks*"))
    assert tuilab("verify", "last").returncode == 0


def test_what_a_killed_supervisor_leaves_is_ended_and_read_by_the_sampler(
    root: Path, begun: "subprocess.Popen[str]"
) -> None:
    run_dir = store.find("last", root)
    run = look(run_dir).summary.run
    assert run

    os.kill(run.supervisor.pid, signal.SIGKILL)
    begun.communicate(timeout=60)
    until(lambda: not list(run_dir.glob("marks*")))

    assert (begun.returncode, look(run_dir).state) == (125, "lost")
    assert roots_in(run_dir) == [at / 2 for at in range(1, 28)]
    until(lambda: processes_of(run_dir) == [])


def test_stopped_at_once_it_loses_no_step(
    tuilab: Tuilab, root: Path, begun: "subprocess.Popen[str]"
) -> None:
    tuilab("stop", "last", "--now")
    begun.communicate(timeout=60)

    run_dir = store.find("last", root)
    assert (look(run_dir).state, len(roots_in(run_dir))) == ("stopped", 27)
    assert processes_of(run_dir) == [] and not list(run_dir.glob("marks*"))


def test_a_run_that_has_lost_its_front_goes_on_and_is_whole(
    tuilab: Tuilab, root: Path, begun: "subprocess.Popen[str]"
) -> None:
    begun.kill()
    begun.wait(60)
    os.kill(worker_of(root), signal.SIGCONT)
    tuilab("stop", "last")
    begun.communicate(timeout=60)  # whoever reads what the command prints hears it to its end
    until(lambda: look(store.find("last", root)).summary.is_over)

    assert len(roots_in(store.find("last", root))) == 27


def test_a_killed_sampler_is_no_harm(
    tuilab: Tuilab, root: Path, begun: "subprocess.Popen[str]"
) -> None:
    run_dir = store.find("last", root)
    os.kill(worker_of(root), signal.SIGCONT)
    (sampler,) = {
        int(line.split()[0]) for line in processes_of(run_dir) if "engine.sampler" in line
    }
    os.kill(sampler, signal.SIGKILL)
    until(lambda: "sampler" in look(run_dir).summary.unavailable)
    tuilab("stop", "last")
    begun.communicate(timeout=60)

    assert look(run_dir).state == "stopped" and len(roots_in(run_dir)) == 27


def test_a_folder_of_marks_that_is_left_is_no_harm_to_what_is_done_with_a_run(
    tuilab: Tuilab, root: Path
) -> None:
    assert tuilab("exec", "--quiet", "--", "true").returncode == 0
    run_dir = store.find("last", root)
    marks = run_dir / "marks-worker-0"
    marks.mkdir()
    Ring(str(marks)).mark(layout.STEPPED, 1, 2, name=1)

    assert tuilab("verify", "last").returncode == 0
    assert tuilab("export", "last", "-o", "run.tgz").returncode == 0
    assert tuilab("import", "run.tgz", "--root", "two").returncode == 0
    (imported,) = store.list_runs(Path("two"))
    assert not list(imported.glob("marks*"))
    assert tuilab("rm", "last").returncode == 0 and not run_dir.exists()
