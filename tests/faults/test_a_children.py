"""What a worker starts: children, storms, daemons and loaders end with their run, and are named."""

from pathlib import Path

import pytest

from tests.engine import write_scenario
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest, reach_stage
from tests.faults.victims import kill, supervisor_of

pytestmark = pytest.mark.faults


def test_25_five_hundred_short_lived_grandchildren_are_no_burden(site: Site) -> None:
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
def test_21_a_storm_of_forks_ends_with_its_run(site: Site, generation: str) -> None:
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
@pytest.mark.parametrize("number", ["SIGKILL", "SIGSEGV"])
def test_22_a_loader_worker_that_is_killed_is_a_failure_that_names_it(
    site: Site, number: str
) -> None:
    """A real DataLoader; the run goes on to its end, and no loader process is left."""
    more = f"""
import torch

class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        time.sleep(0.01)
        if i == 17: os.kill(os.getpid(), signal.{number})
        return torch.zeros(4)
"""
    body = "for step, batch in enumerate(torch.utils.data.DataLoader(Data(), 4, num_workers=2)): lab.log(step, x=1.0)"
    done = site.run("run", str(write_scenario(site.folder, body, more)), "--headless", "--quiet")

    summary = check(site, latest(site), "failed").summary
    assert done.returncode == 4 and is_well(done)
    assert "DataLoader worker" in summary.reason


def test_22_a_loader_worker_that_hangs_does_not_outlive_a_killed_trainer(site: Site) -> None:
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


def test_22_a_child_outlives_the_thread_that_forked_it(site: Site) -> None:
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
lab.claim("the-child-ended-by-itself", os.waitstatus_to_exitcode(os.wait()[1]), equals=7)
"""
    done = site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    assert done.returncode == 0, done.stdout
    check(site, latest(site), "succeeded")


def test_18_memory_that_a_scenario_shared_is_given_back_when_it_is_stopped_at_once(
    site: Site,
) -> None:
    """Python's own process for that removes it when all others are gone, unless it is killed with them."""
    held = site.folder / "held"
    body = f"""
shared = shared_memory.SharedMemory(create=True, size=4096)
open({str(held)!r}, "w").write("/dev/shm/" + shared.name)
lab.stage("on")
time.sleep(600)
"""
    run_dir = site.detach(
        write_scenario(site.folder, body, "from multiprocessing import shared_memory")
    )
    reach_stage(site, "on")
    was_there = Path(held.read_text()).exists()

    site.run("stop", "last", "--now")

    check(site, run_dir, "stopped")
    assert was_there and not Path(held.read_text()).exists()


def test_6_memory_that_a_scenario_shared_is_given_back_when_what_a_dead_supervisor_left_is_ended(
    site: Site,
) -> None:
    """A fork that hears no SIGTERM keeps Python's process for that waiting, until it is killed: not both at once."""
    held = site.folder / "held"
    body = f"""
shared = shared_memory.SharedMemory(create=True, size=4096)
open({str(held)!r}, "w").write("/dev/shm/" + shared.name)
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork(): os._exit(0)
    time.sleep(600)
lab.stage("on")
time.sleep(600)
"""
    run_dir = site.detach(
        write_scenario(site.folder, body, "from multiprocessing import shared_memory")
    )
    reach_stage(site, "on")
    was_there = Path(held.read_text()).exists()

    kill(supervisor_of(run_dir))

    check(site, run_dir, "lost")
    assert was_there and not Path(held.read_text()).exists()


def test_56_a_worker_that_becomes_a_daemon_is_not_left_behind(site: Site) -> None:
    body = """
lab.log(0, half=0.0)
hears, tells = os.pipe()
if os.fork():
    os.read(hears, 1)
    os._exit(0)
os.setsid()
between = os.getpid()
if os.fork(): os._exit(0)
while os.getppid() == between: time.sleep(0.01)  # or it may be seen as one more that is left behind
os.write(tells, b"x")
null = os.open(os.devnull, os.O_RDWR)
for fd in (0, 1, 2): os.dup2(null, fd)
os.closerange(3, 256)
time.sleep(600)
"""
    done = site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    summary = check(site, latest(site), "failed").summary
    assert summary.reason == "the worker ended with exit code 0 before run() returned"
    assert summary.leftover_count == 1 and "ended 1 process that the run left behind" in done.stdout


DAEMON = """
def daemon(act):
    if os.fork():
        return os.wait()
    os.setsid()
    if os.fork(): os._exit(0)
    act()
    time.sleep(600)
"""


def test_19_thirty_daemons_that_hold_the_output_open_end_with_their_run(site: Site) -> None:
    """No signal to a group reaches them, and the pipe that they hold never ends."""
    body = """
hears, tells = os.pipe()
for _ in range(30): daemon(lambda: os.write(tells, b"x"))
got = 0
while got < 30: got += len(os.read(hears, 30))
"""
    done = site.run("run", str(write_scenario(site.folder, body, DAEMON)), "--headless", "--quiet")

    assert done.returncode == 0 and "ended 30 processes that the run left behind" in done.stdout
    assert check(site, latest(site), "succeeded").summary.leftover_count == 30


CLEANED = """
lab.stage("begun")
daemon(lambda: os.execve("/bin/sleep", ["sleep", "600"], {"SITE": os.environ["TUILAB_SITE"]}))
"""  # the mark of the test stays, under another name: what looks for a run knows nothing of it


@pytest.mark.parametrize("goes_on", [False, True], ids=["at the end", "at a stop"])
def test_20_a_daemon_with_a_cleaned_environment_ends_with_its_run(
    site: Site, goes_on: bool
) -> None:
    more = f'{CLEANED}lab.stage("on")\ntime.sleep({600 * goes_on})'
    run_dir = site.detach(write_scenario(site.folder, more, DAEMON))
    reach_stage(site, "on")
    if goes_on:
        site.run("stop", "last")

    check(site, run_dir, "stopped" if goes_on else "succeeded")


def test_23_what_is_left_after_an_exit_of_0_is_ended_and_named(site: Site) -> None:
    """A child, one in a group of its own and one in a session of its own; the worker says that all went well."""
    body = """
subprocess.Popen(["sleep", "601"])
subprocess.Popen(["sleep", "602"], process_group=0)
subprocess.Popen(["sleep", "603"], start_new_session=True)
"""
    done = site.run("run", str(write_scenario(site.folder, body)), "--headless", "--quiet")

    assert done.returncode == 0 and "ended 3 processes that the run left behind" in done.stdout
    told = check(site, latest(site), "succeeded").summary.leftovers
    assert all(any(f"sleep {number}" in name for name in told) for number in (601, 602, 603))
