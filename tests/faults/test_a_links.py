"""The screens over ssh, frozen links, and terminals that are gone or take nothing: the run goes on, the front leaves."""

import fcntl
import shlex
import signal
import struct
import termios
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import TUILAB
from tests.engine import look, until, write_scenario
from tests.faults.conftest import Ssh
from tests.faults.fronts import NOISY, WAITS, Open, cpu_share, front_of, is_gone, wait_for_points
from tests.faults.oracle import check
from tests.faults.sites import Site, reach_stage
from tests.tui.terminals import PATIENCE_S, Terminal

pytestmark = pytest.mark.faults


def ssh_command(ssh: Ssh, words: str) -> tuple[str, ...]:
    exports = " ".join(
        f"{name}={shlex.quote(value)}"
        for name, value in ssh.site.environment.items()
        if name != "PATH"
    )
    more = "LC_ALL=C.UTF-8 COLORTERM=truecolor"
    return (*ssh.command, "-tt", "localhost", f"env {exports} {more} {TUILAB} {words}")


def test_10_killing_the_ssh_client_ends_the_front_and_not_the_run(
    site: Site, ssh: Ssh, screens: Open, go: Path
) -> None:
    term = screens(command=ssh_command(ssh, f"run {write_scenario(site.folder, WAITS)}"))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "probe")
    term.process.kill()

    until(lambda: is_gone(site))
    assert look(run_dir).state == "running"
    again = screens(command=ssh_command(ssh, "attach"))
    again.wait_for("running", "on", "half")
    go.touch()
    until(lambda: look(run_dir).state == "succeeded")
    assert [stage.name for stage in look(run_dir).summary.stages] == ["on", "the last stage"]
    again.wait_for("succeeded", "the last stage")
    again.type("q")
    assert again.wait() == 0
    assert again.is_restored() and again.strange() == []
    check(site, run_dir, "succeeded")


def test_11_a_frozen_link_shows_the_present_as_soon_as_it_thaws(
    site: Site, ssh: Ssh, screens: Open, go: Path
) -> None:
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
    frames = term.frames
    go.touch()
    until(lambda: look(run_dir).state == "succeeded")
    term.process.send_signal(signal.SIGCONT)
    term.wait_for("succeeded", "the last line")

    assert (
        share < 0.5
    )  # what goes round and round takes all of a core; how little is little, a busy box decides
    assert grown < 20e6
    assert term.frames - frames < 20  # of a backlog it would be a hundred
    term.type("q")
    assert term.wait() == 0
    check(site, run_dir, "succeeded")


def test_11_a_frozen_link_that_is_cut_ends_the_front_and_not_the_run(
    site: Site, ssh: Ssh, screens: Open, go: Path
) -> None:
    term = screens(command=ssh_command(ssh, f"run {write_scenario(site.folder, NOISY)}"))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "loss")
    term.process.send_signal(signal.SIGSTOP)
    wait_for_points(run_dir, 500)
    term.process.kill()

    until(lambda: is_gone(site))
    wait_for_points(run_dir, 100)
    go.touch()
    check(site, run_dir, "succeeded")


ANOTHER_SESSION = ("setsid", "--wait", TUILAB)  # to which the end of the terminal is not told


@pytest.mark.parametrize("command", [(TUILAB,), ANOTHER_SESSION], ids=["told", "not told"])
@pytest.mark.parametrize("is_stopped", [False, True], ids=["awake", "stopped"])
def test_12_a_front_whose_terminal_is_gone_leaves(
    site: Site, screens: Open, go: Path, command: tuple[str, ...], is_stopped: bool
) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)), command=command)
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    front = front_of(site)
    if is_stopped:
        front.send_signal(signal.SIGSTOP)
    term.hang_up()
    if is_stopped:
        front.send_signal(signal.SIGCONT)

    until(lambda: is_gone(site))
    assert look(run_dir).state == "running"
    go.touch()
    check(site, run_dir, "succeeded")


@pytest.mark.parametrize("answers", [True, False], ids=["answers", "never answers"])
def test_13_a_terminal_that_stops_reading_holds_nothing_up(
    site: Site, screens: Open, go: Path, answers: bool
) -> None:
    term = screens("run", str(write_scenario(site.folder, NOISY)), answers=answers)
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "loss")
    front = psutil.Process(term.process.pid)
    memory = front.memory_info().rss
    term.stop_reading()
    fill(term)
    wait_for_points(run_dir, 1000)
    share = cpu_share(front, 3.0)
    grown = front.memory_info().rss - memory
    term.read_again()
    term.type(" ")
    term.wait_for("frozen")
    term.type(" ")
    go.touch()
    term.wait_for("succeeded", "the last line")

    assert (
        share < 0.5
    )  # what goes round and round takes all of a core; how little is little, a busy box decides
    assert grown < 20e6
    term.type("q")
    assert term.wait() == 0
    assert term.is_restored()
    check(site, run_dir, "succeeded")


def front_that_is_blocked(site: Site, screens: Open) -> tuple[Terminal, Path]:
    """Run what never stops telling in a terminal that takes nothing any more; return it and the folder of the run."""
    term = screens("run", str(write_scenario(site.folder, NOISY)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "loss")
    term.stop_reading()
    fill(term)
    return term, run_dir


def test_13_a_front_whose_terminal_takes_nothing_can_be_ended(
    site: Site, screens: Open, go: Path
) -> None:
    term, run_dir = front_that_is_blocked(site, screens)
    term.process.send_signal(signal.SIGTERM)

    assert term.process.wait(PATIENCE_S) == 130
    term.read_again()
    until(term.is_restored)
    until(lambda: is_gone(site))
    go.touch()
    check(site, run_dir, "succeeded")


def test_13_a_run_can_be_stopped_and_left_while_the_terminal_takes_nothing(
    site: Site, screens: Open, go: Path
) -> None:
    term, run_dir = front_that_is_blocked(site, screens)
    term.type("ss")  # the second says yes
    until(lambda: look(run_dir).state == "stopped")
    term.type("q")

    assert term.process.wait(PATIENCE_S) == 0
    term.read_again()
    until(term.is_restored)
    check(site, run_dir, "stopped")


def fill(term: Terminal) -> None:
    """Make the screens send until the terminal takes no more."""
    before = -1
    while before != (before := waiting_in(term)) or before < 1000:
        term.type("\x0c")  # draws everything again
        time.sleep(0.1)


def waiting_in(term: Terminal) -> int:
    """Return how many bytes wait to be read from a terminal."""
    return int(struct.unpack("i", fcntl.ioctl(term.ours, termios.FIONREAD, b"\0" * 4))[0])
