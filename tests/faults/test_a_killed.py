"""Killed at any moment: the record stays readable, the state is right and nobody is left."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import CHECKOUT, TUILAB
from tests.engine import look, until, write_scenario
from tests.faults.fabricated_runs import fabricate_run, run_started
from tests.faults.oracle import check, check_list, is_well, raw_records
from tests.faults.sites import Site, order_for, reach_stage, supervise
from tests.faults.victims import child_of, is_suspended, kill, supervisor_of
from tuilab.engine import processes
from tuilab.record import events, presence

pytestmark = pytest.mark.faults

# Two children as a DataLoader has them, a daemon, and a hot loop that notes each record once the lab has taken it.
HOT = """
import multiprocessing
fork = multiprocessing.get_context("fork")
queue = fork.Queue()
for _ in range(2):
    fork.Process(target=queue.get, daemon=True).start()
subprocess.Popen(["sleep", "600"], start_new_session=True)
note = os.open(f"{os.environ['NOTES']}/{os.environ['TUILAB_RUN']}", os.O_WRONLY | os.O_CREAT, 0o600)
lab.stage("hot")
for step in range(400):
    lab.log(step, half=step / 2)
    os.pwrite(note, step.to_bytes(8, "little"), 0)
    time.sleep(0.001)
"""


def kill_at_random(site: Site, path: Path, victim: str, is_hot: bool, delay_s: float) -> None:
    """Kill one process of a run some time after it was started, or has begun to log."""
    notes = Path(tempfile.mkdtemp(dir=site.folder))
    front = site.start("run", str(path), "--headless", "--quiet", env={"NOTES": str(notes)})
    if is_hot:
        until(lambda: any(notes.iterdir()))
    time.sleep(delay_s)  # the random moment
    words = {"worker": "tuilab.lab.worker", "supervisor": "tuilab.engine.supervisor"}
    found = [(front.pid, presence.start_time(front.pid))]
    while (
        victim != "front"
        and not (found := list(child_of(front.pid, words[victim])))
        and front.poll() is None
    ):
        time.sleep(0.001)
    for pid, start in found[:1]:
        if start is not None:
            processes.send(pid, start, signal.SIGKILL)
    out, err = front.communicate(timeout=60)
    if victim != "front":
        assert is_well(subprocess.CompletedProcess([], front.returncode, out, err)), err


@pytest.mark.timeout(240)
def test_1_3_87_sixty_kills_at_random_moments_lose_nothing_that_was_written(site: Site) -> None:
    chance = random.Random(20261121)
    path = write_scenario(site.folder, HOT)
    moments = [
        (chance.choice(["worker", "supervisor", "front"]), chance.random() < 0.7, chance.random())
        for _ in range(60)
    ]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda moment: kill_at_random(site, path, *moment), moments))
    runs = [run for run in site.root.iterdir() if run.is_dir()]
    until(lambda: not site.living())
    states = {run.name: check(site, run).state for run in runs}

    notes = {
        note.name: int.from_bytes(note.read_bytes(), "little")
        for note in site.folder.glob("*/*Z-probe-*")
        if note.is_file() and note.stat().st_size
    }
    for run, last in notes.items():
        written = raw_records(site.root / run / "journal" / "worker-0.jsonl")
        steps = [record["s"] for record in written if record["k"] == "logged"]
        assert steps == list(range(len(steps))) and len(steps) > last
    assert len(notes) >= 40
    assert (
        {"killed", "lost", "succeeded"}
        <= set(states.values())
        <= {"killed", "lost", "succeeded", "stopped"}
    )
    check_list(site.root, states)


# ---- the supervisor dies


@pytest.mark.usefixtures("has_strace")
def test_4_5_a_supervisor_killed_at_any_of_its_calls_leaves_a_readable_run_and_no_process(
    site: Site,
) -> None:
    """SIGKILL on entry to the nth call: before, between and after every record it writes and every process it starts."""
    path = write_scenario(
        site.folder,
        'lab.log(0, half=0.0)\nsubprocess.Popen(["sleep", "600"], start_new_session=True)',
    )
    order = order_for(site, path)
    log = site.folder / "calls"
    traced = [
        "write",
        "wait4",
        "mkdir",
        "dup2",
        "fdatasync",
        "vfork",
        "clone",
        "unlink",
        "pwrite64",
        "openat",
    ]
    supervise(site, order, "strace", "-o", str(log), "-e", f"trace={','.join(traced)}")
    counts = Counter(row.partition("(")[0] for row in log.read_text().splitlines())
    points = [(call, n) for call in traced[:-1] for n in range(1, min(counts[call], 10) + 1)]
    points += [("openat", counts["openat"] - n) for n in range(0, 45, 6)]

    def kill_at(point: tuple[str, int]) -> None:
        call, n = point
        inject = f"inject={call}:signal=KILL:when={n}"
        supervise(site, order, "strace", "-o", os.devnull, "-e", f"trace={call}", "-e", inject)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(kill_at, points))
    until(lambda: not site.living())
    for run in site.root.iterdir():
        if not (run / "artifacts").is_dir():
            shutil.rmtree(run)  # killed between two mkdirs: nothing has begun
    runs = list(site.root.iterdir())
    states = {run.name: check(site, run).state for run in runs}

    assert len(runs) > 20
    assert {"lost", "succeeded"} <= set(states.values()) <= {"lost", "succeeded", "stopped"}
    check_list(site.root, states)


def test_6_what_is_left_when_supervisor_sampler_and_front_die_together_is_named_and_ended(
    site: Site,
) -> None:
    """A daemon outlives its worker; nobody is left who would end it, so the next command does."""
    path = write_scenario(
        site.folder,
        'subprocess.Popen(["sleep", "600"], start_new_session=True)\nlab.stage("on")\ntime.sleep(600)',
    )
    front = site.start("run", str(path), "--headless")
    run_dir = reach_stage(site, "on")
    supervisor = supervisor_of(run_dir)
    (sampler,) = child_of(supervisor[0], "tuilab.engine.sampler")
    kill(supervisor, number=signal.SIGSTOP)  # or it starts another sampler in between
    until(lambda: is_suspended(supervisor[0]))
    kill(sampler, supervisor)
    front.kill()
    until(lambda: len(site.living()) == 1)

    first = site.run("stop", "last")
    second = site.run("stop", "last")

    assert first.returncode == second.returncode == 0
    assert (
        "is lost; ended its remaining processes: " in first.stdout and "sleep 600" in first.stdout
    )
    assert "is lost; none of its processes is left" in second.stdout
    check(site, run_dir, "lost")


def test_6_a_stopped_sampler_whose_supervisor_died_is_found_and_ended(site: Site) -> None:
    run_dir = site.detach(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)'))
    reach_stage(site, "on")
    supervisor = supervisor_of(run_dir)
    (sampler,) = child_of(supervisor[0], "tuilab.engine.sampler")
    kill(sampler, number=signal.SIGSTOP)
    until(lambda: is_suspended(sampler[0]))
    kill(supervisor)
    until(lambda: list(site.living()) == [sampler[0]])

    done = site.run("stop", "last")

    assert (
        "ended its remaining processes: " in done.stdout and "tuilab.engine.sampler" in done.stdout
    )
    check(site, run_dir, "lost")


def test_3_a_worker_ends_with_its_supervisor(site: Site) -> None:
    """It ignores every signal that can be ignored, and computes."""
    body = "for number in range(1, 65):\n    try: signal.signal(number, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
    run_dir = site.detach(write_scenario(site.folder, body + 'lab.stage("on")\nwhile True: pass'))
    reach_stage(site, "on")
    supervisor = supervisor_of(run_dir)
    kill(supervisor)

    until(lambda: not site.living())

    check(site, run_dir, "lost")


# ---- a run whose supervisor cannot be what it was


@pytest.mark.parametrize(
    "change",
    ["start", "another box", "boot", "pid_namespace", "pid 0", "pid -1", "pid 1", "pid 2**40"],
)
def test_26_27_a_pid_that_is_not_the_supervisor_any_more_is_never_signalled(
    site: Site, change: str
) -> None:
    """The record of a run that never ended, with the bystander's pid in place of its supervisor's."""
    innocent = presence.identify(site.bystander.pid)
    assert innocent is not None
    field, _, value = change.partition(" ")
    changed: dict[str, dict[str, Any]] = {
        "start": {"start": innocent.start - 1},
        "another": {"host": "elsewhere", "boot": "another"},
        "boot": {"boot": "another"},
        "pid_namespace": {"pid_namespace": 1},
        "pid": {"pid": int(value) if field == "pid" and "*" not in value else 2**40},
    }
    identity = msgspec.structs.replace(innocent, **changed[field])
    run_dir = fabricate_run(
        site, run_started(supervisor=identity), events.StateChanged(state="running")
    )

    now, later = site.run("stop", "last", "--now"), site.run("stop", "last")

    assert is_well(now) and is_well(later)
    elsewhere = field in ("another", "pid_namespace")
    assert now.returncode == later.returncode == (2 if elsewhere else 0)
    assert (
        "stop it there" if elsewhere else "is lost; none of its processes is left"
    ) in now.stdout + now.stderr
    assert look(run_dir).state == ("running" if elsewhere else "lost")
    assert site.bystander_says.read_text() == "ready\n"
    assert site.bystander.poll() is None


AGAIN = """
import os, signal, subprocess, sys, time
from pathlib import Path
from tests.engine import look, newest, until
from tests.faults.victims import supervisor_of
tuilab, path, root, says = sys.argv[1:]
run = lambda *words: subprocess.run([tuilab, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
assert run("run", path, "--detach").returncode == 0
run_dir = until(lambda: newest(Path(root)))
until(lambda: any(stage.name == "on" for stage in look(run_dir).summary.stages))
pid, _ = supervisor_of(run_dir)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as process 1 of the namespace it has to let go of orphans
os.kill(pid, signal.SIGKILL)
until(lambda: not Path(f"/proc/{pid}").exists())
while True:  # until a process of ours has the number that the supervisor had
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
    innocent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if innocent.pid == pid: break
    innocent.kill()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
stops = [run("stop", "last"), run("stop", "last", "--now"), run("rm", "last")]
Path(says).write_text(repr((innocent.poll(), [done.returncode for done in stops], stops[0].stdout)))
innocent.kill()
"""


def test_26_an_innocent_that_has_the_number_of_the_supervisor_is_not_ended(site: Site) -> None:
    """For real: in a namespace of pids of its own the next number can be chosen."""
    contain = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run(
        [*contain, "sh", "-c", "echo 5 > /proc/sys/kernel/ns_last_pid"], capture_output=True
    ).returncode:
        pytest.skip("the number of the next process cannot be chosen here: it takes root")
    path = write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)')
    says = site.folder / "says"
    words = [TUILAB, str(path), str(site.root), str(says)]

    done = site.run(command=[*contain, sys.executable, "-c", AGAIN, *words], cwd=CHECKOUT)

    assert done.returncode == 0, done.stderr
    assert (
        says.read_text().startswith("(None, [0, 0, 0], ")
        and "is lost; none of its processes is left" in says.read_text()
    )
    until(lambda: not site.living())


@pytest.mark.parametrize(
    ("victim", "state"),
    [("the run", "stopped"), ("the worker that waits", "killed"), ("the supervisor", "lost")],
)
def test_3_an_arm_ends_with_who_waits_for_it(site: Site, victim: str, state: str) -> None:
    more = 'def sleepy(lab):\n    lab.stage("in the arm")\n    if os.fork() == 0: os.setsid()\n    time.sleep(600)\n'
    run_dir = site.detach(
        write_scenario(site.folder, 'lab.arm("a", sleepy, prefix=["nice"])()', more)
    )
    reach_stage(site, "in the arm")
    waiting = look(run_dir).summary.workers["worker-0"].started
    assert waiting is not None
    if victim == "the run":
        site.run("stop", "last")
    else:
        kill(supervisor_of(run_dir) if victim == "the supervisor" else (waiting.pid, waiting.start))

    check(site, run_dir, state)
