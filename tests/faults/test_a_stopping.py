"""Stopping: a run ends when it is asked to, whatever its supervisor has been robbed of and whatever hangs."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.conftest import CHECKOUT, TUILAB
from tests.engine import look, until, write_scenario
from tests.fakes.no_calls import PIDFDS
from tests.faults.fabricated_runs import fabricate_run, run_started
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, reach_stage
from tests.faults.victims import child_of, kill, supervisor_of
from tuilab.engine import processes
from tuilab.record import events, presence

if TYPE_CHECKING:
    from tests.fakes.clock import Clock

pytestmark = pytest.mark.faults
pytest_plugins = ["tests.fakes.clock", "tests.fakes.no_children"]

# A child and a grandchild that the kernel does not end with their worker, in sessions of their own; both have to be killed.
TREE = """
deaf = "import signal, subprocess; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
sleeper = 'subprocess.Popen(["sleep", "600"], start_new_session=True).wait()'
subprocess.Popen([sys.executable, "-c", deaf + sleeper], start_new_session=True)
until = time.monotonic() + 60
while len(descendants(os.getpid())) < 2 and time.monotonic() < until: time.sleep(0.01)
lab.claim("one-is-one", True)
lab.stage("on")
while True: time.sleep(600)
"""
MORE = "from tuilab.record.presence import descendants"
NO_PIDFD = [sys.executable, str(CHECKOUT / "tests/fakes/no_calls.py"), "ENOSYS", PIDFDS]
NOT_WAITED_FOR = "the judge: not waited for, because the run was stopped"


@pytest.fixture(params=["no pidfd", "no list of children", "neither"])
def poor(request: pytest.FixtureRequest) -> list[str]:
    """What stands before a command line to take from it what a system may not have."""
    if request.param == "no pidfd":
        return NO_PIDFD
    return [
        *request.getfixturevalue("no_children"),
        *(NO_PIDFD if request.param == "neither" else []),
    ]


@pytest.mark.parametrize("how", [(), ("--now",)], ids=["in order", "at once"])
def test_16_18_a_stop_ends_all_of_a_run_on_a_poor_system(
    site: Site, poor: list[str], how: tuple[str, ...]
) -> None:
    run_dir = site.detach(write_scenario(site.folder, TREE, MORE), command=[*poor, TUILAB])
    reach_stage(site, "on")

    done = site.run("stop", "last", *how, command=[*poor, TUILAB])

    assert done.returncode == 0 and done.stdout.startswith("asked ")
    check(site, run_dir, "stopped")


@pytest.mark.parametrize("how", [(), ("--now",)], ids=["in order", "at once"])
@pytest.mark.parametrize("before", [[], NO_PIDFD], ids=["", "no pidfd"])
@pytest.mark.parametrize("limit", [0, 3])
def test_76_a_stop_ends_all_of_a_run_whose_supervisor_may_open_nothing_any_more(
    site: Site, limit: int, before: list[str], how: tuple[str, ...]
) -> None:
    run_dir = site.detach(write_scenario(site.folder, TREE, MORE), command=[*before, TUILAB])
    reach_stage(site, "on")
    resource.prlimit(supervisor_of(run_dir)[0], resource.RLIMIT_NOFILE, (limit, limit))

    site.run("stop", "last", *how)

    summary = check(site, run_dir, "stopped").summary
    assert (
        summary.unavailable["safe storage"]
        == "the streams could not be asked for: Too many open files"
    )


def test_76_a_run_whose_supervisor_may_open_nothing_any_more_comes_to_its_end(
    site: Site, go: Path
) -> None:
    """Its own end, with a process left behind that nobody can look at: only that it is one."""
    body = 'subprocess.Popen(["sleep", "600"])\nlab.stage("on")\nwhile not os.path.exists(os.environ["GO"]): time.sleep(0.01)'
    run_dir = site.detach(write_scenario(site.folder, body))
    reach_stage(site, "on")
    resource.prlimit(supervisor_of(run_dir)[0], resource.RLIMIT_NOFILE, (0, 0))
    go.touch()

    summary = check(site, run_dir, "succeeded").summary
    assert summary.leftover_count == 1
    assert summary.leftovers[0].endswith("(its name: Too many open files)")
    assert summary.unavailable["verdicts"] == "cannot start the judge: Too many open files"


def test_6_what_a_dead_supervisor_left_behind_is_ended_on_a_poor_system(
    site: Site, poor: list[str]
) -> None:
    run_dir = site.detach(write_scenario(site.folder, TREE, MORE), command=[*poor, TUILAB])
    reach_stage(site, "on")
    supervisor = supervisor_of(run_dir)
    sampler = until(lambda: next(child_of(supervisor[0], "tuilab.engine.sampler"), None))
    for (pid, start), number in (
        (supervisor, signal.SIGSTOP),
        (sampler, signal.SIGKILL),
        (supervisor, signal.SIGKILL),
    ):
        assert processes.send(pid, start, number)
    until(lambda: len(site.living()) == 2)

    done = site.run("stop", "last", command=[*poor, TUILAB])

    assert "is lost; ended its remaining processes: " in done.stdout
    check(site, run_dir, "lost")


def test_26_a_pid_that_is_not_the_supervisor_any_more_is_not_signalled_without_pidfds_either(
    site: Site,
) -> None:
    innocent = presence.identify(site.bystander.pid)
    assert innocent is not None
    identity = msgspec.structs.replace(innocent, start=innocent.start - 1)
    fabricate_run(site, run_started(supervisor=identity), events.StateChanged(state="running"))
    send = f"from tuilab.engine.processes import send; print([send(pid, 1, 9) for pid in ({innocent.pid}, 0, -1, 2**40)])"

    stop = site.run("stop", "last", "--now", command=[*NO_PIDFD, TUILAB])
    sent = subprocess.run([*NO_PIDFD, sys.executable, "-c", send], capture_output=True, text=True)

    assert "is lost; none of its processes is left" in stop.stdout
    assert sent.stdout == "[False, False, False, False]\n"
    assert site.bystander.poll() is None and site.bystander_says.read_text() == "ready\n"


def test_76_a_supervisor_that_cannot_be_looked_at_is_not_taken_for_dead(site: Site) -> None:
    """As where no descriptor is left to open anything of /proc with: the state stays what was recorded."""
    run_dir = site.detach(write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)'))
    reach_stage(site, "on")
    look_around = f"""
import resource
from pathlib import Path
from tuilab.record.live_run import Watch
watch = Watch(Path({str(run_dir)!r}))
while watch.refresh(): pass
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
print(watch.state(), watch.supervisor_presence)
"""
    seen = subprocess.run([sys.executable, "-c", look_around], capture_output=True, text=True)

    assert seen.stdout == "running unknown\n", seen.stderr
    site.run("stop", "last", "--now")
    check(site, run_dir, "stopped")


# ---- what starts others faster than a list of them is read

# Twelve processes, each of which starts its successor and ends: there are never more, nor fewer until they are killed. After
# 150 s they leave a file and the storm is over, whatever happens.
STORM = """
deadline = time.monotonic() + 150

def live():
    while time.monotonic() < deadline:
        time.sleep(0.003)
        if os.fork(): os._exit(0)
        os.setsid()
    open(os.environ["GO"], "w")
    os._exit(0)

for _ in range(12):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        live()
lab.stage("on")
time.sleep(150)
"""


@pytest.mark.timeout(400)
@pytest.mark.parametrize("how", [(), ("--now",)], ids=["in order", "at once"])
def test_21_a_storm_that_renews_itself_ends_with_its_run(
    site: Site, go: Path, how: tuple[str, ...]
) -> None:
    run_dir = site.detach(write_scenario(site.folder, STORM))
    reach_stage(site, "on")

    site.run("stop", "last", *how)

    check(site, run_dir, "stopped")
    assert not go.exists()  # it did not end by itself


@pytest.mark.timeout(400)
def test_6_21_a_storm_whose_supervisor_and_sampler_died_is_ended_or_said_to_be_left(
    site: Site, go: Path
) -> None:
    """On a busy box it may be too fast to be caught, or even to be seen; then nobody says that nothing is left."""
    alive = site.folder / "alive"
    os.mkfifo(alive)
    holds = f"os.set_inheritable(os.open({str(alive)!r}, os.O_WRONLY), True)\n"
    front = site.start("run", str(write_scenario(site.folder, holds + STORM)), "--headless")
    ear = os.open(alive, os.O_RDONLY)  # it ends when the last process of the storm does
    supervisor = supervisor_of(reach_stage(site, "on"))
    processes.send(*supervisor, signal.SIGSTOP)  # or it starts another sampler in between
    (sampler,) = child_of(supervisor[0], "tuilab.engine.sampler")
    processes.send(*sampler, signal.SIGKILL)
    processes.send(*supervisor, signal.SIGKILL)
    front.wait()

    deleted = site.run("rm", "last")
    stopped = site.run("stop", "last")

    assert deleted.returncode == 2 and "is lost, and " in deleted.stderr and is_well(deleted)
    if stopped.returncode == 0:
        assert os.read(ear, 1) == b"" and not go.exists()  # it did not end by itself
    else:
        assert "could not end " in stopped.stderr and is_well(stopped)
    os.close(ear)


# ---- the box is called something else


RENAMED = "import os, socket, sys; socket.sethostname(eval(sys.argv[1])); os.execvp(sys.argv[2], sys.argv[2:])"


@pytest.mark.parametrize("name", [b"renamed", b"b\xff\xfex"], ids=["renamed", "not UTF-8"])
def test_27_a_run_is_stopped_and_deleted_under_whatever_name_its_box_has_by_now(
    site: Site, name: bytes
) -> None:
    there = ["unshare", "--uts", sys.executable, "-c", RENAMED, repr(name)]
    if subprocess.run([*there, "true"], capture_output=True).returncode:
        pytest.skip("a host name of its own takes root")
    run_dir = site.detach(
        write_scenario(site.folder, 'lab.stage("on")\ntime.sleep(600)'), command=[*there, TUILAB]
    )
    reach_stage(site, "on")

    refused = site.run("rm", "last")
    stop = site.run("stop", "last")

    assert refused.returncode == 2 and "is running; stop it first" in refused.stderr
    assert stop.returncode == 0 and is_well(stop)
    check(site, run_dir, "stopped")
    assert site.run("rm", "last").returncode == 0


@pytest.mark.parametrize("name", [b"renamed", b"b\xff\xfex"], ids=["renamed", "not UTF-8"])
def test_27_a_run_of_before_a_reboot_is_lost_under_the_name_that_its_box_has(
    site: Site, name: bytes
) -> None:
    """Only the name tells that it was this box: the boot is another one."""
    there = ["unshare", "--uts", sys.executable, "-c", RENAMED, repr(name)]
    if subprocess.run([*there, "true"], capture_output=True).returncode:
        pytest.skip("a host name of its own takes root")
    me = presence.identify(os.getpid())
    assert me is not None
    before = msgspec.structs.replace(me, host=name.decode(errors="replace"), boot="another")
    fabricate_run(site, run_started(supervisor=before), events.StateChanged(state="running"))

    said = [
        site.run("stop", "last", command=[*there, TUILAB]).stdout,
        site.run("stop", "last").stderr,
    ]

    assert "is lost; none of its processes is left" in said[0]
    assert "stop it there" in said[1]


# ---- the judge hangs


@pytest.fixture
def hanging_judge(site: Site) -> None:
    """The library that a judge loads for a claim about time never finishes loading."""
    (site.folder / "hanging" / "scipy").mkdir(parents=True)
    (site.folder / "hanging" / "scipy" / "__init__.py").write_text("import time; time.sleep(600)")
    site.environment["PYTHONPATH"] = f"{site.folder / 'hanging'}:{site.environment['PYTHONPATH']}"


TIMED = """
lab.record(events.ClaimDeclared(text="a is slower", over="a", under="b", op="at_least", bound=1.0))
lab.record(events.RaceStarted(arms=["a", "b"], threads=1, device="cpu", loops={"a": 1, "b": 1}))
for number in range(20):
    lab.record(events.BlockTimed(arm="ab"[number % 2], round=number // 2, slot=0, loops=1, wall_ns=1000, cpu_ns=1000))
lab.record(events.RaceFinished(arms=["a", "b"]))
"""
EVENTS = "from tuilab.record import events"


def reach_judge(run_dir: Path, *but: tuple[int, int]) -> tuple[int, int]:
    """Wait for a judge, but for those that were there before, and return its pid and start time."""
    supervisor, _ = supervisor_of(run_dir)
    return until(
        lambda: next(
            (found for found in child_of(supervisor, "tuilab.engine.judge") if found not in but),
            None,
        )
    ) or (
        0,
        0,
    )


@pytest.mark.usefixtures("hanging_judge")
def test_a_stop_at_once_does_not_wait_for_a_judge_that_hangs(site: Site) -> None:
    run_dir = site.detach(write_scenario(site.folder, TIMED, EVENTS))
    reach_judge(run_dir)

    site.run("stop", "last", "--now")

    assert check(site, run_dir).summary.unavailable["verdicts"] == NOT_WAITED_FOR


@pytest.mark.usefixtures("hanging_judge")
def test_a_stop_at_once_asks_no_judge(site: Site) -> None:
    run_dir = site.detach(
        write_scenario(site.folder, f'{TIMED}lab.stage("on")\ntime.sleep(600)', EVENTS)
    )
    reach_stage(site, "on")

    site.run("stop", "last", "--now")

    assert check(site, run_dir, "stopped").summary.unavailable["verdicts"] == NOT_WAITED_FOR


@pytest.mark.usefixtures("hanging_judge")
def test_a_stop_in_order_does_not_wait_for_a_look_between_repeats(site: Site) -> None:
    """The verdicts at the end it does wait for, until it is told to stop at once."""
    run_dir = site.detach(write_scenario(site.folder, TIMED, EVENTS), "--budget", "1h")
    looking = reach_judge(run_dir)

    site.run("stop", "last")
    reach_judge(run_dir, looking)
    before = look(run_dir).summary.unavailable
    site.run("stop", "last", "--now")

    assert "verdicts" not in before
    assert check(site, run_dir).summary.unavailable["verdicts"] == NOT_WAITED_FOR


@pytest.mark.usefixtures("hanging_judge")
def test_a_judge_that_hangs_is_waited_for_in_words_and_ends_soon_after_a_stop(
    clock: "Clock", site: Site
) -> None:
    run_dir = site.detach(write_scenario(site.folder, TIMED, EVENTS))
    reach_judge(run_dir)
    clock.put_forward(6)
    until(
        lambda: (
            (look(run_dir).summary.state, look(run_dir).summary.reason)
            == ("running", "waits for its verdicts")
        )
    )
    kill(supervisor_of(run_dir), number=signal.SIGTERM)
    until(lambda: look(run_dir).summary.state == "stopping")
    clock.put_forward(4)  # a grace, and not the minute that a judge may take

    assert check(site, run_dir, "stopped").summary.unavailable["verdicts"] == NOT_WAITED_FOR
