"""Signals and stops: whatever is sent, and whatever a worker makes of it, the run ends in a state that says so."""

import os
import signal
from pathlib import Path

import pytest

from tests.engine import look, until, write_scenario
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest, reach_stage
from tests.faults.victims import child_of, kill, supervisor_of

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    ("number", "state"),
    [
        (signal.SIGTERM, "stopped"),
        (signal.SIGINT, "stopped"),
        (signal.SIGSEGV, "lost"),
        (signal.SIGABRT, "lost"),
    ],
)
def test_9_a_signal_to_the_supervisor_ends_the_run_in_a_state_that_says_so(
    site: Site, number: int, state: str
) -> None:
    run_dir = site.detach(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)'))
    reach_stage(site, "on")

    kill(supervisor_of(run_dir), number=number)

    check(site, run_dir, state)


def test_9_signals_that_are_no_request_do_not_touch_the_run(site: Site) -> None:
    go = site.folder / "go"
    run_dir = site.detach(
        write_scenario(
            site.folder, f'lab.stage("on")\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)'
        )
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


def test_9_a_supervisor_that_was_suspended_can_be_asked_to_stop(site: Site) -> None:
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
        (
            f"if os.fork() == 0: os.setsid()\n{STUBBORN}",
            "its child in a session of its own ignores every signal",
        ),
        (
            "if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)",
            "all of it is suspended",
        ),
        (
            "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)",
            "it hides from ptrace and its /proc belongs to root",
        ),
        (LEADERLESS, "its first thread has ended and another goes on"),
    ],
    ids=lambda value: "" if "(" in value else value,
)
def test_15_16_18_a_stop_ends_a_worker(site: Site, body: str, what: str) -> None:
    run_dir = site.detach(write_scenario(site.folder, f'lab.stage("on")\n{body}\ntime.sleep(600)'))
    reach_stage(site, "on")

    site.run("stop", "last", "--now")

    check(site, run_dir, "stopped")


FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.mark.skipif(
    not os.access(FREEZER, os.W_OK),
    reason="a process that cannot be killed takes root and a freezer of cgroups v1",
)
@pytest.mark.timeout(180)
def test_17_a_worker_that_cannot_be_killed_is_named(site: Site) -> None:
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
        assert (
            summary.reason.startswith(f"could not be ended: {worker[0]} ")
            and "tuilab.lab.worker" in summary.reason
        )
    finally:
        (ice / "freezer.state").write_text("THAWED")
        until(lambda: not (ice / "cgroup.procs").read_text())
        ice.rmdir()


def test_24_every_way_to_end_is_told_apart(site: Site) -> None:
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
    fatal = [
        number for number in (*range(1, 32), 34, 40, 64) if number not in harmless
    ]  # 32 and 33 are the C library's
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
    ends = {
        worker.started.arm: worker.exited
        for worker in summary.workers.values()
        if worker.started and worker.exited
    }
    told = {text.title: text.text for text in summary.texts}
    assert is_well(done) and done.returncode == 0
    assert [ends[f"code {code}"].code for code in codes] == list(codes)
    assert [ends[f"signal {number}"].signal for number in fatal] == fatal
    assert told["code 42"] == "code 42: the worker ended with exit code 42 before run() returned"
    assert told["signal 11"] == "signal 11: ended by SIGSEGV"
    assert told["signal 40"] == "signal 40: ended by signal 40"


# ---- what a run inherits


def test_9_a_signal_handler_may_log_in_the_middle_of_a_record(site: Site) -> None:
    """As one does who saves something on SIGTERM; a lock that is held would wait for itself."""
    body = """
ticks = []
def tick(*_):
    if len(ticks) == 100: return  # a signal may still be on its way when the timer is switched off
    ticks.append(len(ticks))
    lab.log(ticks[-1], tick=1.0)
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
step = 0
while len(ticks) < 100:
    lab.log(step, half=step / 2)
    step += 1
signal.setitimer(signal.ITIMER_REAL, 0)
lab.claim("every-tick", ticks[-1], equals=99)
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


CRASHES = {
    "SIGSEGV": "ctypes.string_at(0)",
    "SIGABRT": "os.abort()",
    "SIGBUS": "import mmap, tempfile\nfile = tempfile.TemporaryFile()\nfile.truncate(4096)\nseen = mmap.mmap(file.fileno(), 4096)\nfile.truncate(0)\nseen[0]",
    "SIGFPE": "code = b'\\x31\\xc9\\x31\\xd2\\xf7\\xf1\\xc3'\ncall(code, signal.SIGFPE)",
    "SIGILL": "code = b'\\x0f\\x0b'\ncall(code, signal.SIGILL)",
}
# Instructions that the processor refuses, where it is the one that they were written for.
CALL = """
import mmap, platform
def call(code, number):
    if platform.machine() != "x86_64": os.kill(os.getpid(), number)
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""


def test_2_a_worker_that_crashes_leaves_the_line_at_which_it_did(site: Site) -> None:
    """Each in an arm of one run, by what the processor or the kernel refuses."""
    arms = "\n".join(
        f"def {name}(lab):\n" + "".join(f"    {line}\n" for line in body.splitlines())
        for name, body in CRASHES.items()
    )
    body = """
for crash in ({}):
    try: lab.arm(crash.__name__, crash)()
    except Exception as problem: lab.text(str(problem), title=crash.__name__)
""".format(", ".join(CRASHES))

    done = site.run(
        "run", str(write_scenario(site.folder, body, CALL + arms)), "--headless", "--quiet"
    )

    summary = check(site, latest(site), "succeeded").summary
    ends = {
        worker.started.arm: worker.exited
        for worker in summary.workers.values()
        if worker.started and worker.exited
    }
    assert done.returncode == 0, done.stdout + done.stderr
    assert {name: ends[name].signal for name in CRASHES} == {
        name: signal.Signals[name] for name in CRASHES
    }
    assert all(f"in {name}" in ends[name].fault for name in CRASHES), ends
    assert {text.title: text.text for text in summary.texts} == {
        name: f"{name}: ended by {name}" for name in CRASHES
    }
