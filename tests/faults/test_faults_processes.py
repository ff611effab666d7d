"""Processes and signals: whatever dies, the record stays readable, the state is right and nobody is left."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import TUILAB
from tests.engine import look, until, write_scenario
from tests.faults.oracle import (
    Site,
    check,
    check_list,
    child_of,
    fabricate,
    is_well,
    latest,
    make_site,
    order_for,
    raw_records,
    reach_stage,
    run_started,
    supervise,
    supervisor_of,
)
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
    while victim != "front" and not (found := list(child_of(front.pid, words[victim]))) and front.poll() is None:
        time.sleep(0.001)
    for pid, start in found[:1]:
        if start is not None:
            processes.send(pid, start, signal.SIGKILL)
    out, err = front.communicate(timeout=60)
    if victim != "front":
        assert is_well(subprocess.CompletedProcess([], front.returncode, out, err)), err


@pytest.mark.timeout(240)
def test_a_hundred_kills_at_random_moments_lose_nothing_that_was_written(site: Site) -> None:
    chance = random.Random(20261121)
    path = write_scenario(site.folder, HOT)
    moments = [(chance.choice(["worker", "supervisor", "front"]), chance.random() < 0.7, chance.random()) for _ in range(100)]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda moment: kill_at_random(site, path, *moment), moments))
    runs = [run for run in site.root.iterdir() if run.is_dir()]
    until(lambda: not site.living())
    states = {run.name: check(site, run).state for run in runs}

    notes = {
        note.name: int.from_bytes(note.read_bytes(), "little") for note in site.folder.glob("*/*Z-probe-*") if note.is_file()
    }
    for run, last in notes.items():
        written = raw_records(site.root / run / "journal" / "worker-0.jsonl")
        steps = [record["s"] for record in written if record["k"] == "logged"]
        assert steps == list(range(len(steps))) and len(steps) > last
    assert len(notes) >= 70
    assert {"killed", "lost", "succeeded"} <= set(states.values()) <= {"killed", "lost", "succeeded", "stopped"}
    check_list(site.root, states)


# ---- the supervisor dies


@pytest.fixture(scope="module")
def has_strace() -> None:
    """Skip where strace is missing or may not trace."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    if subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True).returncode:
        pytest.skip("strace may not trace here")


@pytest.mark.usefixtures("has_strace")
def test_a_supervisor_killed_at_any_of_its_calls_leaves_a_readable_run_and_no_process(site: Site) -> None:
    """SIGKILL on entry to the nth call: before, between and after every record it writes and every process it starts."""
    path = write_scenario(site.folder, 'lab.log(0, half=0.0)\nsubprocess.Popen(["sleep", "600"], start_new_session=True)')
    order = order_for(site, path)
    log = site.folder / "calls"
    traced = ["write", "wait4", "mkdir", "dup2", "fdatasync", "vfork", "clone", "unlink", "pwrite64", "openat"]
    supervise(site, order, "strace", "-o", str(log), "-e", f"trace={','.join(traced)}")
    counts = Counter(row.partition("(")[0] for row in log.read_text().splitlines())
    points = [(call, n) for call in traced[:-1] for n in range(1, min(counts[call], 16) + 1)]
    points += [("openat", counts["openat"] - n) for n in range(0, 45, 4)]

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


def kill(*victims: tuple[int, int], number: int = signal.SIGKILL) -> None:
    for pid, start in victims:
        assert processes.send(pid, start, number)


def test_what_is_left_when_supervisor_sampler_and_front_die_together_is_named_and_ended(site: Site) -> None:
    """A daemon outlives its worker; nobody is left who would end it, so the next command does."""
    path = write_scenario(
        site.folder, 'subprocess.Popen(["sleep", "600"], start_new_session=True)\nlab.stage("on")\ntime.sleep(600)'
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
    assert "is lost; ended what was left of it: " in first.stdout and "sleep 600" in first.stdout
    assert "is lost; none of its processes is left" in second.stdout
    check(site, run_dir, "lost")


def is_suspended(pid: int) -> bool:
    """Say whether every thread of a process has taken note of SIGSTOP."""
    return all(") T " in (task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir())


def test_a_stopped_sampler_whose_supervisor_died_is_found_and_ended(site: Site) -> None:
    run_dir = site.detach(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)'))
    reach_stage(site, "on")
    supervisor = supervisor_of(run_dir)
    (sampler,) = child_of(supervisor[0], "tuilab.engine.sampler")
    kill(sampler, number=signal.SIGSTOP)
    until(lambda: is_suspended(sampler[0]))
    kill(supervisor)
    until(lambda: list(site.living()) == [sampler[0]])

    done = site.run("stop", "last")

    assert "ended what was left of it: " in done.stdout and "tuilab.engine.sampler" in done.stdout
    check(site, run_dir, "lost")


def test_a_worker_ends_within_two_seconds_of_its_supervisor(site: Site) -> None:
    """It ignores every signal that can be ignored, and computes."""
    body = (
        "for number in range(1, 65):\n    try: signal.signal(number, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
    )
    run_dir = site.detach(write_scenario(site.folder, body + 'lab.stage("on")\nwhile True: pass'))
    reach_stage(site, "on")
    supervisor = supervisor_of(run_dir)
    kill(supervisor)

    until(lambda: not site.living(), patience_s=20)

    check(site, run_dir, "lost")


@pytest.mark.parametrize(
    ("number", "state"),
    [(signal.SIGTERM, "stopped"), (signal.SIGINT, "stopped"), (signal.SIGSEGV, "lost"), (signal.SIGABRT, "lost")],
)
def test_a_signal_to_the_supervisor_ends_the_run_in_a_state_that_says_so(site: Site, number: int, state: str) -> None:
    run_dir = site.detach(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)'))
    reach_stage(site, "on")

    kill(supervisor_of(run_dir), number=number)

    check(site, run_dir, state)


def test_signals_that_are_no_request_do_not_touch_the_run(site: Site) -> None:
    go = site.folder / "go"
    run_dir = site.detach(
        write_scenario(site.folder, f'lab.stage("on")\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)')
    )
    reach_stage(site, "on")
    for number in (
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGPIPE,
        signal.SIGTSTP,
        signal.SIGCONT,
    ):
        kill(supervisor_of(run_dir), number=number)
    kill(supervisor_of(run_dir), number=signal.SIGCONT)
    go.touch()

    check(site, run_dir, "succeeded")


def test_a_supervisor_that_was_suspended_can_be_asked_to_stop(site: Site) -> None:
    run_dir = site.detach(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)'))
    reach_stage(site, "on")
    kill(supervisor_of(run_dir), number=signal.SIGSTOP)

    site.run("stop", "last")

    check(site, run_dir, "stopped")


# ---- the worker misbehaves

STUBBORN = """
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
"""
LEADERLESS = """
import threading
threading.Thread(target=time.sleep, args=[600]).start()
lab.stage("on")
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (STUBBORN, "it ignores every signal"),
        (f"if os.fork() == 0: os.setsid()\n{STUBBORN}", "its child in a session of its own ignores every signal"),
        (
            "if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)",
            "all of it is suspended",
        ),
        ("ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)", "it hides from ptrace and its /proc belongs to root"),
        (LEADERLESS, "its first thread has ended and another goes on"),
    ],
    ids=lambda value: "" if "(" in value else value,
)
def test_a_stop_ends_a_worker(site: Site, body: str, what: str) -> None:
    run_dir = site.detach(write_scenario(site.folder, f'lab.stage("on")\n{body}\ntime.sleep(600)'))
    reach_stage(site, "on")

    site.run("stop", "last", "--now")

    check(site, run_dir, "stopped")


FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.mark.skipif(
    not os.access(FREEZER, os.W_OK), reason="a process that cannot be killed takes root and a freezer of cgroups v1"
)
@pytest.mark.timeout(180)
def test_a_worker_that_cannot_be_killed_is_named(site: Site) -> None:
    run_dir = site.detach(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)'))
    reach_stage(site, "on")
    (worker,) = child_of(supervisor_of(run_dir)[0], "tuilab.lab.worker")
    ice = FREEZER / f"tuilab-{os.getpid()}"
    ice.mkdir()
    try:
        (ice / "cgroup.procs").write_text(str(worker[0]))
        (ice / "freezer.state").write_text("FROZEN")
        site.run("stop", "last", "--now")
        until(lambda: look(run_dir).summary.is_over)
        (ice / "freezer.state").write_text("THAWED")

        summary = check(site, run_dir, "unkillable").summary
        assert summary.reason.startswith(f"could not be ended: {worker[0]} ") and "tuilab.lab.worker" in summary.reason
    finally:
        (ice / "freezer.state").write_text("THAWED")
        until(lambda: not (ice / "cgroup.procs").read_text())
        ice.rmdir()


def test_every_way_to_end_is_told_apart(site: Site) -> None:
    """Exit codes and all signals that end a process, the nameless real-time ones too: each in an arm of one run."""
    codes = (0, 1, 2, 42, 126, 127, 128, 137, 255)
    harmless = {
        signal.SIGCHLD,
        signal.SIGCONT,
        signal.SIGURG,
        signal.SIGWINCH,
        signal.SIGSTOP,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
    }
    fatal = [number for number in (*range(1, 32), 34, 40, 64) if number not in harmless]  # 32 and 33 are the C library's
    more = """
def leave(lab, code):
    os._exit(code)

def die(lab, number):
    if number != signal.SIGKILL: signal.signal(number, signal.SIG_DFL)
    ctypes.CDLL(None).syscall(62, os.getpid(), number)
    time.sleep(1)
"""
    body = f"""
for name, body, numbers in (("code", leave, {list(codes)}), ("signal", die, {fatal})):
    for number in numbers:
        try: lab.arm(f"{{name}} {{number}}", body, number)()
        except Exception as problem: lab.text(str(problem), title=f"{{name}} {{number}}")
"""
    done = site.run("run", str(write_scenario(site.folder, body, more)), "--headless", "--quiet")

    summary = check(site, latest(site), "succeeded").summary
    ends = {worker.started.arm: worker.exited for worker in summary.workers.values() if worker.started and worker.exited}
    told = {text.title: text.text for text in summary.texts}
    assert is_well(done) and done.returncode == 0
    assert [ends[f"code {code}"].code for code in codes] == list(codes)
    assert [ends[f"signal {number}"].signal for number in fatal] == fatal
    assert told["code 42"] == "the worker ended with exit code 42 before run() returned"
    assert told["signal 11"] == "ended by SIGSEGV"
    assert told["signal 40"] == "ended by signal 40"


def test_five_hundred_short_lived_grandchildren_are_no_burden(site: Site) -> None:
    body = """
for _ in range(500):
    if os.fork() == 0:
        if os.fork(): os._exit(0)
        os._exit(3)
    os.wait()
"""
    done = site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    assert done.returncode == 0
    assert check(site, latest(site), "succeeded").summary.leftover_count < 20


@pytest.mark.parametrize("generation", ["time.sleep(0.002)", "pass"], ids=["slow", "fast"])
def test_a_storm_of_forks_ends_with_its_run(site: Site, generation: str) -> None:
    """Each process forks its successor in a session of its own and ends: none lives long enough to be seen for long."""
    body = f"""
lab.stage("on")
deadline = time.monotonic() + 60
for _ in range(4):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while time.monotonic() < deadline:
            if os.fork(): os._exit(0)
            os.setsid()
            {generation}
        os._exit(0)
time.sleep(600)
"""
    run_dir = site.detach(write_scenario(site.folder, body))
    reach_stage(site, "on")

    site.run("stop", "last")

    check(site, run_dir, "stopped")


@pytest.mark.real_torch
def test_a_loader_worker_that_is_killed_is_a_failure_that_names_it(site: Site) -> None:
    """A real DataLoader; the run goes on to its end, and no loader process is left."""
    more = """
import torch

class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        time.sleep(0.01)
        if i == 17: os.kill(os.getpid(), signal.SIGKILL)
        return torch.zeros(4)
"""
    body = "for step, batch in enumerate(torch.utils.data.DataLoader(Data(), 4, num_workers=2)): lab.log(step, x=1.0)"
    done = site.run("run", str(write_scenario(site.folder, body, more)), "--headless", "--quiet")

    summary = check(site, latest(site), "failed").summary
    assert done.returncode == 4 and is_well(done)
    assert "DataLoader worker" in summary.reason


def test_a_loader_worker_that_hangs_does_not_outlive_a_killed_trainer(site: Site) -> None:
    more = """
import multiprocessing

def hang():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True: time.sleep(1)
"""
    body = """
for _ in range(3): multiprocessing.get_context("fork").Process(target=hang, daemon=True).start()
os.kill(os.getpid(), signal.SIGKILL)
"""
    site.run("run", str(write_scenario(site.folder, body, more)), "--headless", "--quiet")

    assert check(site, latest(site), "killed").summary.reason.startswith("ended by SIGKILL")


def test_a_child_outlives_the_thread_that_forked_it(site: Site) -> None:
    """The kernel ties a child to the thread that made it; a pool that is filled from a thread must not lose its processes."""
    body = """
import threading
def fork():
    if os.fork() == 0:
        time.sleep(0.5)
        os._exit(7)
thread = threading.Thread(target=fork)
thread.start()
thread.join()
lab.claim("the child ended by itself", os.waitstatus_to_exitcode(os.wait()[1]), equals=7)
"""
    done = site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    assert done.returncode == 0, done.stdout
    check(site, latest(site), "succeeded")


def test_a_worker_that_becomes_a_daemon_is_not_left_behind(site: Site) -> None:
    body = """
lab.log(0, half=0.0)
hears, tells = os.pipe()
if os.fork():
    os.read(hears, 1)
    os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.write(tells, b"x")
null = os.open(os.devnull, os.O_RDWR)
for fd in (0, 1, 2): os.dup2(null, fd)
os.closerange(3, 256)
time.sleep(600)
"""
    done = site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    summary = check(site, latest(site), "failed").summary
    assert summary.reason == "the worker ended with exit code 0 before run() returned"
    assert summary.leftover_count == 1 and "left behind and ended: 1 process:" in done.stdout


def test_a_worker_without_its_standard_streams_runs_to_its_end(site: Site) -> None:
    done = site.run(
        "run",
        str(write_scenario(site.folder, "for fd in (0, 1, 2): os.close(fd)\nlab.log(0, half=0.0)")),
        "--headless",
        "--quiet",
    )

    assert done.returncode == 0
    check(site, latest(site), "succeeded")


@pytest.mark.parametrize(("beyond", "state"), [(256, "succeeded"), (4096, "failed")])
def test_nothing_of_ours_is_written_into_the_files_of_a_worker_that_closed_every_descriptor(
    site: Site, beyond: int, state: str
) -> None:
    """Its own files get the numbers that ours had; without a line to its supervisor it fails and says why."""
    mine = site.folder / "mine"
    mine.mkdir()
    body = f"""
lab.log(0, half=0.0)
os.closerange(3, {beyond})
files = [open(f"{mine}/{{number}}", "w") for number in range(40)]
for step in range(1, 100): lab.log(step, half=step / 2)
"""
    done = site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    summary = check(site, latest(site), state, is_whole=True).summary
    assert summary.series["half", "", "worker-0"].count == 100
    assert [file.read_bytes() for file in mine.iterdir()] == [b""] * 40
    assert ("the scenario closed the line to its supervisor" in done.stdout) == (state == "failed")


def test_what_a_crashed_worker_says_last_is_not_written_into_its_own_files(site: Site) -> None:
    mine = site.folder / "mine"
    mine.mkdir()
    body = f"""
os.closerange(3, 4096)
files = [open(f"{mine}/{{number}}", "w") for number in range(40)]
os.kill(os.getpid(), signal.SIGSEGV)
"""
    site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    assert check(site, latest(site), "killed").summary.reason == "ended by SIGSEGV"
    assert [file.read_bytes() for file in mine.iterdir()] == [b""] * 40


def test_the_child_of_a_fork_starts_no_arm(site: Site) -> None:
    """It shares the line of the worker, which would get the answer, or lose its own."""
    body = """
child = os.fork()
if child == 0:
    try: lab.arm("a", quick)()
    except RuntimeError: os._exit(7)
    os._exit(0)
lab.claim("the child is refused", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), equals=7)
"""
    done = site.run("run", str(write_scenario(site.folder, body, "def quick(lab): pass")), "--headless", "--quiet")

    assert done.returncode == 0, done.stdout
    assert check(site, latest(site), "succeeded").summary.arms == []


LINE = """
import json, socket
line = socket.socket(fileno=os.dup(int(sys.argv[1])))
def say(type, **fields): line.send(json.dumps({"type": type, **fields}).encode())
def order(**fields):
    say("ArmOrder", arm="x", function="run", **fields)
    line.recv(9999)
"""


@pytest.mark.parametrize(
    ("nonsense", "state"),
    [
        ("line.send(os.urandom(4096))", "failed"),
        ("line.send(b'')", "failed"),
        ("line.send(b'[' * 100_000)", "failed"),
        ("line.send(b'{\"type\":\"Farewell\",\"value\":' + b'[' * 90_000 + b']' * 90_000 + b'}')", "failed"),
        ("line.send(b'{\"type\":\"Farewell\",\"value\":' + b'9' * 90_000 + b'}')", "failed"),
        ("say('Unheard')", "failed"),
        ("say('ArmReply', writer='', elapsed_s=0)", "failed"),
        ("say('Farewell', error=5)", "failed"),
        ("order(prefix=['a\\0b'])", "succeeded"),
        ("order(env={'a=b': ''})", "succeeded"),
        ("order(prefix=['x' * 150_000])", "succeeded"),
        ("order(timeout_s=-1.0)", "succeeded"),
        ("say('Farewell', error='\\x01' * 30_000); os._exit(1)", "failed"),
        ("line.shutdown(socket.SHUT_RDWR)", "failed"),
        ("os.close(int(sys.argv[1]))", "failed"),
    ],
)
def test_nonsense_on_its_line_harms_the_worker_alone(site: Site, nonsense: str, state: str) -> None:
    path = write_scenario(site.folder, f"lab.log(0, half=0.0)\n{LINE}{nonsense}")

    done = site.run("run", str(path), "--headless", "--quiet")

    run_dir = latest(site)
    assert is_well(done), done.stdout + done.stderr
    assert "supervisor failed" not in check(site, run_dir, state).summary.reason
    assert (run_dir / "supervisor.log").read_bytes() == b""


def test_an_arm_may_return_as_much_as_it_may_be_given(site: Site) -> None:
    """Whatever fits into the arm's farewell fits into the answer to the one who asked."""
    more = "def give(lab, size): return 'x' * size"
    body = """
for size in (198_900, 198_950, 198_965, 198_970, 199_100):
    try: got = len(lab.arm("big", give, size)())
    except Exception as problem: got = str(problem)
    lab.text(str(got), title=str(size))
"""
    done = site.run("run", str(write_scenario(site.folder, body, more)), "--headless", "--quiet")

    texts = {text.title: text.text for text in check(site, latest(site), "succeeded").summary.texts}
    assert done.returncode == 0
    assert texts["198900"] == "198900"
    assert "too much for a message" in texts["199100"]


def test_numbers_that_are_not_finite_come_back_from_an_arm(site: Site) -> None:
    more = 'def give(lab, value): return [value, float("-inf")]'
    body = 'a, b = lab.arm("odd", give, float("nan"))()\nlab.claim("both came", [a, b], equals=[float("nan"), float("-inf")])'

    done = site.run("run", str(write_scenario(site.folder, body, more)), "--headless", "--quiet")

    assert done.returncode == 0, done.stdout
    check(site, latest(site), "succeeded")


# ---- what a run inherits

HOSTILE_START = """
import os, signal, sys
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_ignored_and_blocked_signals_are_not_inherited_by_the_run(site: Site) -> None:
    body = """
deaf = [s.name for s in signal.Signals if s not in (signal.SIGPIPE, signal.SIGXFSZ) and signal.getsignal(s) == signal.SIG_IGN]
lab.claim("it ignores nothing", " ".join(deaf), equals="")
lab.claim("it blocks nothing", len(signal.pthread_sigmask(signal.SIG_BLOCK, [])), equals=0)
lab.stage("on")
time.sleep(600)
"""
    path = write_scenario(site.folder, body)
    site.run("run", str(path), "--detach", command=[sys.executable, "-c", HOSTILE_START, TUILAB])
    run_dir = reach_stage(site, "on")

    site.run("stop", "last")

    summary = check(site, run_dir, "stopped").summary
    assert [claim.verdict.verdict for claim in summary.claims.values() if claim.verdict] == ["SUPPORTED", "SUPPORTED"]


def test_a_current_folder_that_was_deleted_is_no_problem(site: Site) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    gone = site.folder / "gone"
    gone.mkdir()
    command = ["bash", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "-", str(gone), TUILAB]

    done = site.run("run", str(path), "--headless", "--quiet", command=command)

    assert done.returncode == 0 and is_well(done), done.stderr
    check(site, latest(site), "succeeded")
    for words in (("run", "./probe.py"), ("run", str(path), "--root", "here", "--headless"), ("check", str(path)), ("list",)):
        gone.mkdir()
        assert is_well(site.run(*words, command=command)), words


def test_closed_standard_streams_do_not_confuse_a_detached_run(site: Site) -> None:
    path = write_scenario(site.folder, 'print("hello")\nlab.log(0, half=0.0)')
    done = site.run("run", str(path), "--detach", command=["bash", "-c", 'exec "$@" <&- >&- 2>&-', "-", TUILAB])

    run_dir = latest(site)
    assert done.returncode == 0
    check(site, run_dir, "succeeded")
    assert (run_dir / "stdout.log").read_bytes() == b"hello\n"


def test_few_descriptors_are_a_sentence_or_a_failed_run_but_never_a_traceback(site: Site) -> None:
    path = write_scenario(site.folder, "lab.log(0, half=0.0)")
    for limit in (4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 32):
        done = site.run(
            "run", str(path), "--headless", "--quiet", command=["bash", "-c", f'ulimit -n {limit}; exec "$@"', "-", TUILAB]
        )
        if limit > 6:  # with less, Python itself does not start
            assert is_well(done), (limit, done.stdout + done.stderr)

    assert done.returncode == 0
    until(lambda: not site.living())
    for run_dir in site.root.iterdir():
        assert "supervisor failed" not in check(site, run_dir).summary.reason


AS_NOBODY = """
mount --bind "$1" /mnt && mount -t tmpfs -o mode=755 none "$0" && mkdir -p "$1" && mount --bind /mnt "$1" && umount /mnt || exit 9
shift && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
"""


@pytest.fixture(scope="module")
def as_nobody() -> list[str]:
    """What stands before a command line to run it without rights, or skip; a Python in a closed home is made visible."""
    if os.getuid() != 0:
        pytest.skip("becoming another user takes root")
    base = Path(sys.base_prefix)
    closed = [str(folder) for folder in reversed(base.parents) if not folder.stat().st_mode & 0o001]
    prefix = ["unshare", "--mount", "sh", "-c", AS_NOBODY, closed[0], str(base)] if closed else []
    prefix = prefix or ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*prefix, sys.executable, "-c", "import tuilab"], cwd="/", capture_output=True).returncode:
        pytest.skip("another user cannot read this environment")
    return prefix


@pytest.fixture
def open_site() -> Iterator[Site]:
    """A site that another user may enter and write into."""
    with tempfile.TemporaryDirectory(prefix="tuilab-faults-") as folder:
        os.chmod(folder, 0o777)
        made = make_site(Path(folder))
        made.environment["HOME"] = folder
        yield made
        made.end()


@pytest.mark.parametrize("processes_allowed", [1, 2, 3, 4, 8])
def test_without_room_for_processes_the_run_says_so(open_site: Site, as_nobody: list[str], processes_allowed: int) -> None:
    """RLIMIT_NPROC, which root does not have: it counts every process and thread of that user."""
    site = open_site
    path = write_scenario(
        site.folder,
        "children = []\nwhile len(children) < 50:\n    if (child := os.fork()) == 0: time.sleep(600)\n    children.append(child)",
    )
    limit = f'ulimit -u {processes_allowed}; exec "$@"'

    done = site.run("run", str(path), "--headless", "--quiet", command=[*as_nobody, "bash", "-c", limit, "-", TUILAB], cwd="/")

    assert is_well(done), done.stdout + done.stderr
    assert done.returncode in (4, 5)
    until(lambda: not site.living())
    for run_dir in site.root.iterdir() if site.root.exists() else []:
        assert "supervisor failed" not in check(site, run_dir, "failed").summary.reason


def test_another_users_runs_are_not_touched_and_not_a_traceback(open_site: Site, as_nobody: list[str]) -> None:
    site = open_site
    site.root.mkdir(mode=0o777)
    site.root.chmod(0o777)
    run_dir = site.detach(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)'))
    reach_stage(site, "on")
    verbs = [
        ("runs",),
        ("list",),
        ("attach", "last"),
        ("verify", "last"),
        ("stop", "last"),
        ("rm", "last"),
        ("stop", run_dir.name),
    ]

    said = [site.run(*words, command=[*as_nobody, TUILAB], cwd="/") for words in verbs]

    assert all(map(is_well, said)), [done.stderr for done in said]
    assert [done.returncode for done in said[2:]] == [2] * 5
    assert look(run_dir).state == "running"
    site.run("stop", "last", "--now")
    check(site, run_dir, "stopped")


def test_a_run_inside_a_container_ends_with_it_and_is_not_taken_for_one_of_ours(site: Site) -> None:
    """The front is PID 1 of a pid namespace of its own; from outside its pids mean nothing."""
    contain = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*contain, "true"], capture_output=True).returncode:
        pytest.skip("a pid namespace cannot be made here")
    inside = site.start(
        "run", str(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)')), "--headless", command=[*contain, TUILAB]
    )
    run_dir = reach_stage(site, "on")

    stop, rm = site.run("stop", "last"), site.run("rm", "last")
    inside.kill()

    assert stop.returncode == rm.returncode == 2
    assert "stop it there" in stop.stderr
    assert look(run_dir).state == "running"
    until(lambda: not site.living())
    finished = site.run(
        "run", str(write_scenario(site.folder, "lab.log(0, half=0.0)")), "--headless", command=[*contain, TUILAB]
    )
    assert finished.returncode == 0
    check(site, latest(site), "succeeded")


# ---- a run whose supervisor cannot be what it was


@pytest.mark.parametrize("change", ["start", "another box", "boot", "pid_namespace", "pid 0", "pid -1", "pid 1", "pid 2**40"])
def test_a_pid_that_is_not_the_supervisor_any_more_is_never_signalled(site: Site, change: str) -> None:
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
    run_dir = fabricate(site, run_started(supervisor=identity), events.StateChanged(state="running"))

    now, later = site.run("stop", "last", "--now"), site.run("stop", "last")

    assert is_well(now) and is_well(later)
    elsewhere = field in ("another", "pid_namespace")
    assert now.returncode == later.returncode == (2 if elsewhere else 0)
    assert ("stop it there" if elsewhere else "is lost; none of its processes is left") in now.stdout + now.stderr
    assert look(run_dir).state == ("running" if elsewhere else "lost")
    assert site.bystander_says.read_text() == "ready\n"
    assert site.bystander.poll() is None


# ---- the sampler and the judge


@pytest.mark.timeout(180)
def test_a_sampler_that_stops_or_dies_is_started_again_three_times_and_the_run_is_not_hurt(site: Site) -> None:
    go = site.folder / "go"
    body = f'lab.stage("on")\nfor step in range(10**6):\n    lab.log(step, half=step / 2)\n    time.sleep(0.01)\n    if os.path.exists({str(go)!r}): break'
    run_dir = site.detach(write_scenario(site.folder, body))
    reach_stage(site, "on")
    supervisor, _ = supervisor_of(run_dir)

    def sampler() -> tuple[int, int] | None:
        return next(child_of(supervisor, "tuilab.engine.sampler"), None)

    def is_gone(pid: int) -> bool:
        return presence.start_time(pid) is None

    for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGSEGV, signal.SIGKILL):
        victim = until(sampler)
        kill(victim, number=number)
        until(partial(is_gone, victim[0]))
    until(
        lambda: (
            look(run_dir).summary.unavailable.get("sampler")
            == "ended by SIGKILL; nobody asked for that: out of memory? (restarted 3 times)"
        )
    )
    nobody_again = sampler()
    go.touch()

    streams = sorted(stream.stem for stream in (run_dir / "journal").glob("sampler*"))
    check(site, run_dir, "succeeded", is_whole=True)
    assert nobody_again is None
    assert set(streams) <= {"sampler", "sampler-1", "sampler-2", "sampler-3"}


def test_a_judge_that_dies_costs_the_verdicts_and_nothing_else(site: Site) -> None:
    (site.folder / "deadly" / "scipy").mkdir(parents=True)
    (site.folder / "deadly" / "scipy" / "__init__.py").write_text("import os; os.kill(os.getpid(), 9)")
    body = """
lab.record(events.ClaimDeclared(text="a is slower", over="a", under="b", op="at_least", bound=1.0))
lab.record(events.RaceStarted(arms=["a", "b"], threads=1, device="cpu", loops={"a": 1, "b": 1}))
for number in range(20): lab.record(events.BlockTimed(arm="ab"[number % 2], round=number // 2, slot=0, loops=1, wall_ns=1000, cpu_ns=1000))
"""
    path = write_scenario(site.folder, body, "from tuilab.record import events")
    deadly = f"{site.folder / 'deadly'}:{site.environment['PYTHONPATH']}"

    done = site.run("run", str(path), "--headless", "--quiet", env={"PYTHONPATH": deadly})

    summary = check(site, latest(site), "succeeded").summary
    assert is_well(done)
    assert summary.unavailable["verdicts"] == "the judge: ended by SIGKILL; nobody asked for that: out of memory?"


def test_what_the_sampler_started_is_not_taken_for_a_leftover(site: Site) -> None:
    """It asks git for the commit; a short run may be over before the answer is there."""
    (site.folder / "bin").mkdir()
    slow = site.folder / "bin" / "git"
    slow.write_text("#!/bin/sh\nsleep 600\n")
    slow.chmod(0o755)
    body = 'lab.arm("quick", quick)()\nuntil = time.monotonic() + 20\nwhile time.monotonic() < until and "sleep" not in " ".join(map(name, below())): time.sleep(0.01)'
    more = """
from tuilab.record.presence import descendants
from tuilab.engine.processes import name_of as name
def below(): return descendants(os.getppid())
def quick(lab): pass
"""
    path = write_scenario(site.folder, body, more)

    done = site.run("run", str(path), "--headless", "--quiet", env={"PATH": f"{slow.parent}:{os.environ['PATH']}"})

    assert "left behind" not in done.stdout
    assert check(site, latest(site), "succeeded").summary.leftover_count == 0


@pytest.mark.parametrize(
    ("victim", "state"), [("the run", "stopped"), ("the worker that waits", "killed"), ("the supervisor", "lost")]
)
def test_an_arm_ends_with_who_waits_for_it(site: Site, victim: str, state: str) -> None:
    more = 'def sleepy(lab):\n    lab.stage("in the arm")\n    if os.fork() == 0: os.setsid()\n    time.sleep(600)\n'
    run_dir = site.detach(write_scenario(site.folder, 'lab.arm("a", sleepy, prefix=["nice"])()', more))
    reach_stage(site, "in the arm")
    waiting = look(run_dir).summary.workers["worker-0"].started
    assert waiting is not None
    if victim == "the run":
        site.run("stop", "last")
    else:
        kill(supervisor_of(run_dir) if victim == "the supervisor" else (waiting.pid, waiting.start))

    check(site, run_dir, state)


def test_a_signal_handler_may_log_in_the_middle_of_a_record(site: Site) -> None:
    """As one does who saves something on SIGTERM; a lock that is held would wait for itself."""
    body = """
ticks = []
def tick(*_):
    ticks.append(len(ticks))
    lab.log(ticks[-1], tick=1.0)
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
step = 0
while len(ticks) < 100:
    lab.log(step, half=step / 2)
    step += 1
signal.setitimer(signal.ITIMER_REAL, 0)
lab.claim("every tick", ticks[-1], equals=99)
signal.signal(signal.SIGTERM, lambda *_: (lab.stage("saved"), sys.exit()))
lab.stage("on")
while True: time.sleep(0.001)
"""
    run_dir = site.detach(write_scenario(site.folder, body))
    reach_stage(site, "on")

    site.run("stop", "last")

    summary = check(site, run_dir, "stopped").summary
    assert summary.series["tick", "", "worker-0"].count == 100
    assert [stage.name for stage in summary.stages] == ["on", "saved"]


def test_a_record_that_cannot_be_written_leaves_no_gap(site: Site) -> None:
    body = """
lab.log(0, half=0.0)
try: lab.text(object())
except Exception as problem: lab.text(type(problem).__name__)
try: lab.stage(object())
except Exception as problem: lab.text(type(problem).__name__)
"""
    site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    check(site, latest(site), "succeeded", is_whole=True)
