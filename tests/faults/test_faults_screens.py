"""The Run screen and what can happen to its terminal: the run goes on, the terminal is given back, the machine is not eaten."""

import shlex
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import TUILAB
from tests.engine import until, write_scenario
from tests.faults.conftest import Ssh
from tests.faults.oracle import Site, carrying, check, look, reach_stage
from tests.tui.terminals import Terminal

pytestmark = pytest.mark.faults

WAITS = """
lab.log(0, half=0.0)
lab.stage("on")
while not os.path.exists(os.environ["GO"]): time.sleep(0.01)
lab.log(1, half=0.5)
lab.stage("the last stage")
"""
# Prints and logs without an end in sight: 500 lines and points a second.
NOISY = """
lab.stage("on")
step = 0
while not os.path.exists(os.environ["GO"]):
    lab.log(step, half=step / 2, loss=1 / (step + 1))
    print(step, "x" * 100)
    step += 1
    time.sleep(0.002)
print("the last line")
"""
Open = Callable[..., Terminal]


@pytest.fixture
def screens(site: Site) -> Iterator[Open]:
    """Open `tuilab ...` in a terminal of its own, in the environment of the site; each is closed at the end."""
    opened: list[Terminal] = []

    def open_one(*words: str, command: tuple[str, ...] = (TUILAB,), **more: object) -> Terminal:
        opened.append(Terminal(*command, *words, env=site.environment, **more))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


def fronts(site: Site) -> list[psutil.Process]:
    """Return the processes of the screens: the front itself and its guardian."""
    found = []
    for pid in carrying(site.environment["TUILAB_SITE"]):
        try:
            process = psutil.Process(pid)
            if TUILAB in process.cmdline():
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def front_of(site: Site) -> psutil.Process:
    """Wait for the one front of a site and return its process: the guardian is its child."""

    def parent() -> psutil.Process | None:
        found = fronts(site)
        pids = {process.pid for process in found}
        heads = [process for process in found if process.ppid() not in pids]
        return heads[0] if len(heads) == 1 and len(found) == 2 else None

    return until(parent)


def points(run_dir: Path) -> int:
    """Return how many points the run has logged so far."""
    return sum(series.count for series in look(run_dir).summary.series.values())


def wait_for_points(run_dir: Path, more: int) -> None:
    """Wait until the run has logged so many more points."""
    goal = points(run_dir) + more
    until(lambda: points(run_dir) >= goal)


def cpu_share(process: psutil.Process, span_s: float) -> float:
    """Return the share of a core that a process uses in a span of time."""
    before = process.cpu_times()
    time.sleep(span_s)  # the span that is measured
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / span_s


def is_gone(site: Site) -> bool:
    """Whether neither a front nor a guardian is left."""
    return not fronts(site)


# ---- over ssh


def ssh_command(ssh: Ssh, words: str) -> tuple[str, ...]:
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in ssh.site.environment.items() if name != "PATH")
    more = "LC_ALL=C.UTF-8 COLORTERM=truecolor"
    return (*ssh.command, "-tt", "localhost", f"env {exports} {more} {TUILAB} {words}")


def test_killing_the_ssh_client_ends_the_front_and_not_the_run(site: Site, ssh: Ssh, screens: Open, go: Path) -> None:
    term = screens(command=ssh_command(ssh, f"run {write_scenario(site.folder, WAITS)}"))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "probe")
    term.process.kill()

    until(lambda: is_gone(site), patience_s=2)
    assert look(run_dir).state == "running"
    again = screens(command=ssh_command(ssh, "attach"))
    again.wait_for("running", "on", "half")
    go.touch()
    again.wait_for("succeeded", "the last stage")
    again.type("q")
    assert again.wait() == 0
    assert again.is_restored() and again.strange() == []
    check(site, run_dir, "succeeded")


def test_a_frozen_link_shows_the_present_as_soon_as_it_thaws(site: Site, ssh: Ssh, screens: Open, go: Path) -> None:
    term = screens(command=ssh_command(ssh, f"run {write_scenario(site.folder, NOISY)}"))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "loss")
    front = front_of(site)
    memory = front.memory_info().rss
    term.process.send_signal(signal.SIGSTOP)
    wait_for_points(run_dir, 500)
    share = cpu_share(front, 5.0)
    wait_for_points(run_dir, 500)
    grown = front.memory_info().rss - memory
    seen = len(term.sent)
    go.touch()
    until(lambda: look(run_dir).state == "succeeded")
    term.process.send_signal(signal.SIGCONT)
    term.wait_for("succeeded", "the last line")
    print("\nSHARE", share, grown, len(term.sent) - seen)

    assert share < 0.05
    assert grown < 20e6
    assert len(term.sent) - seen < 100_000
    term.type("q")
    assert term.wait() == 0
    check(site, run_dir, "succeeded")
