"""Terminals and fronts: whatever happens to who watches, the run goes on, and the terminal is left as it was."""

import fcntl
import os
import signal
import struct
import termios
import threading
import time
from pathlib import Path

import pytest

from tests.engine import look, until, write_scenario
from tests.faults.conftest import Ssh
from tests.faults.oracle import check
from tests.faults.ptys import Terminal, is_restored, open_terminal
from tests.faults.sites import Site, latest, reach_stage
from tuilab.record.states import FINAL_STATES

pytestmark = pytest.mark.faults

WAITS = """
lab.log(0, half=0.0)
lab.stage("on")
while not os.path.exists(os.environ["GO"]): time.sleep(0.01)
lab.log(1, half=0.5)
"""
ASLEEP = 'lab.stage("on")\ntime.sleep(600)'


def test_8_ctrl_c_in_a_terminal_stops_the_run_in_order(
    site: Site, terminals: "list[Terminal]"
) -> None:
    terminal = open_terminal(
        site, terminals, "run", str(write_scenario(site.folder, ASLEEP)), "--headless"
    )
    run_dir = reach_stage(site, "on")
    os.write(terminal.ours, b"\x03")

    assert terminal.front.wait(timeout=60) == 130
    check(site, run_dir, "stopped")
    until(lambda: b"stopping; Ctrl-C again stops at once" in terminal.seen)
    assert b"Traceback" not in terminal.seen
    assert is_restored(terminal)


def test_12_a_terminal_that_is_closed_ends_its_front_and_not_the_run(
    site: Site, terminals: "list[Terminal]", go: Path
) -> None:
    terminal = open_terminal(
        site, terminals, "run", str(write_scenario(site.folder, WAITS)), "--headless", is_read=False
    )
    run_dir = reach_stage(site, "on")
    os.close(terminal.ours)

    terminal.front.wait(timeout=60)
    state = look(run_dir).state
    go.touch()

    assert state == "running"
    assert check(site, run_dir, "succeeded").summary.series["half", "", "worker-0"].count == 2


def test_13_a_terminal_that_stops_reading_does_not_hold_up_the_run(
    site: Site, terminals: "list[Terminal]"
) -> None:
    """Ctrl-S, or a link that hangs: the front waits, the run does not."""
    body = 'for step in range(2000):\n    lab.log(step, half=step / 2)\n    lab.stage(f"{step} " + "x" * 60)\n    time.sleep(0.0005)'
    terminal = open_terminal(
        site, terminals, "run", str(write_scenario(site.folder, body)), "--headless", is_read=False
    )
    os.write(terminal.ours, b"\x13")

    until(lambda: look(latest(site)).state == "succeeded")
    is_waiting = terminal.front.poll() is None
    os.write(terminal.ours, b"\x11")
    threading.Thread(target=terminal.read, daemon=True).start()

    assert is_waiting
    assert terminal.front.wait(timeout=60) == 0
    check(site, latest(site), "succeeded")
    assert is_restored(terminal)


def test_14_a_front_that_is_suspended_goes_on_where_it_was(
    site: Site, terminals: "list[Terminal]", go: Path
) -> None:
    terminal = open_terminal(
        site, terminals, "run", str(write_scenario(site.folder, WAITS)), "--headless"
    )
    run_dir = reach_stage(site, "on")
    terminal.front.send_signal(signal.SIGSTOP)
    go.touch()
    until(lambda: look(run_dir).state == "succeeded")
    fcntl.ioctl(terminal.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 20, 0, 0))
    terminal.front.send_signal(signal.SIGCONT)

    assert terminal.front.wait(timeout=60) == 0
    check(site, run_dir, "succeeded")
    assert is_restored(terminal)


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE],
)
def test_8_a_signal_to_the_front_does_not_touch_the_run(site: Site, go: Path, number: int) -> None:
    front = site.start("run", str(write_scenario(site.folder, WAITS)), "--headless")
    run_dir = reach_stage(site, "on")
    front.send_signal(number)
    if number != signal.SIGPIPE:  # which a Python front ignores
        front.wait(timeout=60)
    go.touch()

    _, err = front.communicate(timeout=60)

    assert "Traceback" not in err
    assert ("continues; show it again: tuilab attach" in err) == (
        number in (signal.SIGTERM, signal.SIGHUP)
    )
    check(site, run_dir, "succeeded")


@pytest.mark.timeout(180)
def test_5_ctrl_c_while_it_starts_leaves_nothing_that_runs(site: Site) -> None:
    """Whoever presses Ctrl-C before the run is known could not stop it later."""
    path = write_scenario(site.folder, ASLEEP)
    for number in range(24):
        front = site.start("run", str(path), "--headless", "--quiet")
        time.sleep(0.02 * number)  # the moment
        front.send_signal(signal.SIGINT)
        front.communicate(timeout=60)
    until(lambda: not site.living(), patience_s=30)

    for run_dir in site.root.glob("*Z-*"):  # none where every Ctrl-C came before the run
        check(site, run_dir, "stopped", "lost")


def test_48_two_who_watch_may_both_stop_it(site: Site) -> None:
    run_dir = site.detach(write_scenario(site.folder, ASLEEP))
    reach_stage(site, "on")
    watching = [site.start("attach", "last") for _ in range(2)]

    stopping = [site.start("stop", "last") for _ in range(4)]

    said = [front.communicate(timeout=60)[0] for front in stopping]
    ends = [front.communicate(timeout=60) and front.returncode for front in watching]
    assert all("asked " in words or "has already ended: stopped" in words for words in said)
    assert ends == [4, 4]
    check(site, run_dir, "stopped")


# ---- over ssh


def test_10_ssh_that_starts_a_detached_run_returns_while_it_goes_on(
    site: Site, ssh: Ssh, go: Path
) -> None:
    """A process that kept the session's output would hold ssh until the run ends."""
    path = write_scenario(site.folder, WAITS)

    out, err = ssh.start(f"run {path} --detach").communicate(timeout=60)

    run_dir = latest(site)
    assert run_dir.name.endswith(out.strip()) and err == ""
    reach_stage(site, "on")
    assert look(run_dir).state == "running"
    go.touch()
    check(site, run_dir, "succeeded")


@pytest.mark.parametrize("options", [(), ("-tt",)], ids=["without a terminal", "with a terminal"])
def test_10_a_run_outlives_the_ssh_client_that_watched_it(
    site: Site, ssh: Ssh, go: Path, options: tuple[str, ...]
) -> None:
    path = write_scenario(site.folder, WAITS)
    client = ssh.start(f"run {path} --headless", *options)
    run_dir = reach_stage(site, "on")
    client.kill()
    client.wait()

    assert look(run_dir).state == "running"
    again = ssh.start("attach last --json --quiet")
    go.touch()
    out, _ = again.communicate(timeout=60)

    assert '"state": "succeeded"' in out
    check(site, run_dir, "succeeded")


def test_11_a_link_that_freezes_does_not_hold_up_the_run(site: Site, ssh: Ssh, go: Path) -> None:
    path = write_scenario(
        site.folder, WAITS.replace("lab.log(1", "print('x' * 1_000_000)\nlab.log(1")
    )
    client = ssh.start(f"run {path} --jsonl", "-tt")
    run_dir = reach_stage(site, "on")
    client.send_signal(signal.SIGSTOP)
    go.touch()

    until(lambda: look(run_dir).state in FINAL_STATES)
    client.kill()

    check(site, run_dir, "succeeded")
