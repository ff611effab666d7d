"""Terminals and fronts: whatever happens to who watches, the run goes on, and the terminal is left as it was."""

import contextlib
import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import look, until, write_scenario
from tests.faults.conftest import Ssh
from tests.faults.oracle import check
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
# What a front may send to a terminal: colours, cursor, line, column and screen control of rich's live line.
ALLOWED = re.compile(rb"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|[\r\n\t]")


@dataclass
class Terminal:
    """A real terminal with a front in it, read in a thread so that nothing blocks."""

    ours: int
    front: "subprocess.Popen[bytes]"
    seen: bytearray = field(default_factory=bytearray)
    before: list[object] = field(default_factory=list)

    def read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self.ours, 65536):
                self.seen += data


@pytest.fixture
def terminals(site: Site) -> Iterator["list[Terminal]"]:
    """The terminals that a test opens; each is closed at its end."""
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.front.kill()
        terminal.front.wait()
        with contextlib.suppress(OSError):
            os.close(terminal.ours)


def open_terminal(
    site: Site, terminals: "list[Terminal]", *words: str, size: tuple[int, int] = (24, 80), is_read: bool = True
) -> Terminal:
    """Start `tuilab ...` as the foreground job of a terminal of its own."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    environment = {**site.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    before = termios.tcgetattr(theirs)
    front = subprocess.Popen(
        ["setsid", "--ctty", TUILAB, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    )
    os.close(theirs)
    terminal = Terminal(ours, front, before=before)
    terminals.append(terminal)
    if is_read:
        threading.Thread(target=terminal.read, daemon=True).start()
    return terminal


def is_restored(terminal: Terminal) -> bool:
    """O7, O8: the cursor is back, the modes are as before, and nothing else was ever sent."""
    seen = bytes(terminal.seen)
    strange = re.findall(rb"[\x00-\x1f\x7f].{0,20}", ALLOWED.sub(b"", seen))
    assert strange == [], strange[:5]
    return seen.rfind(b"\x1b[?25h") >= seen.rfind(b"\x1b[?25l") and termios.tcgetattr(terminal.ours) == terminal.before


def test_ctrl_c_in_a_terminal_stops_the_run_in_order(site: Site, terminals: "list[Terminal]") -> None:
    terminal = open_terminal(site, terminals, "run", str(write_scenario(site.folder, ASLEEP)), "--headless")
    run_dir = reach_stage(site, "on")
    os.write(terminal.ours, b"\x03")

    assert terminal.front.wait(timeout=60) == 130
    check(site, run_dir, "stopped")
    until(lambda: b"stopping; Ctrl-C again stops at once" in terminal.seen)
    assert b"Traceback" not in terminal.seen
    assert is_restored(terminal)


def test_a_terminal_that_is_closed_ends_its_front_and_not_the_run(site: Site, terminals: "list[Terminal]", go: Path) -> None:
    terminal = open_terminal(site, terminals, "run", str(write_scenario(site.folder, WAITS)), "--headless", is_read=False)
    run_dir = reach_stage(site, "on")
    os.close(terminal.ours)

    terminal.front.wait(timeout=60)
    state = look(run_dir).state
    go.touch()

    assert state == "running"
    assert check(site, run_dir, "succeeded").summary.series["half", "", "worker-0"].count == 2


def test_a_terminal_that_stops_reading_does_not_hold_up_the_run(site: Site, terminals: "list[Terminal]") -> None:
    """Ctrl-S, or a link that hangs: the front waits, the run does not."""
    body = 'for step in range(2000):\n    lab.log(step, half=step / 2)\n    lab.stage(f"{step} " + "x" * 60)\n    time.sleep(0.0005)'
    terminal = open_terminal(site, terminals, "run", str(write_scenario(site.folder, body)), "--headless", is_read=False)
    os.write(terminal.ours, b"\x13")

    until(lambda: look(latest(site)).state == "succeeded")
    is_waiting = terminal.front.poll() is None
    os.write(terminal.ours, b"\x11")
    threading.Thread(target=terminal.read, daemon=True).start()

    assert is_waiting
    assert terminal.front.wait(timeout=60) == 0
    check(site, latest(site), "succeeded")
    assert is_restored(terminal)


def test_a_front_that_is_suspended_goes_on_where_it_was(site: Site, terminals: "list[Terminal]", go: Path) -> None:
    terminal = open_terminal(site, terminals, "run", str(write_scenario(site.folder, WAITS)), "--headless")
    run_dir = reach_stage(site, "on")
    terminal.front.send_signal(signal.SIGSTOP)
    go.touch()
    until(lambda: look(run_dir).state == "succeeded")
    fcntl.ioctl(terminal.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 20, 0, 0))
    terminal.front.send_signal(signal.SIGCONT)

    assert terminal.front.wait(timeout=60) == 0
    check(site, run_dir, "succeeded")
    assert is_restored(terminal)


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (24, 80), (500, 1000), (0, 0)])
def test_a_terminal_of_any_size_gets_a_result(site: Site, terminals: "list[Terminal]", size: tuple[int, int]) -> None:
    body = 'lab.stage("one")\nfor step in range(50): lab.log(step, half=step / 2)\nlab.claim("one is one", True)'

    terminal = open_terminal(site, terminals, "run", str(write_scenario(site.folder, body)), "--headless", "--plot", size=size)

    assert terminal.front.wait(timeout=60) == 0
    check(site, latest(site), "succeeded")
    until(lambda: b"SUPPORTED" in terminal.seen)
    assert b"Traceback" not in terminal.seen
    assert is_restored(terminal)


EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x85\x08\r\x7f\u202e\u2028\u2066\ufeff [/bold] [red]"


def test_nothing_of_a_run_steers_a_real_terminal(site: Site, terminals: "list[Terminal]") -> None:
    """The same channels as in a pipe, where colours are on and a live line is drawn."""
    more = f"from tuilab.record import events\nEVIL = {EVIL!r}\n"
    body = """
lab.stage(EVIL)
lab.progress(1, 2, unit=EVIL)
lab.text(EVIL, title=EVIL)
for step in range(30): lab.log(step, arm=EVIL, **{EVIL: step})
lab.claim(EVIL, EVIL, equals="x")
time.sleep(0.5)
raise ValueError(EVIL)
"""
    path = write_scenario(site.folder, body, more)
    fronts = [open_terminal(site, terminals, "run", str(path), "--headless", "--plot")]
    fronts[0].front.wait(timeout=60)
    fronts += [open_terminal(site, terminals, *words) for words in (("attach", "--plot"), ("runs",), ("verify",), ("list",))]

    assert [terminal.front.wait(timeout=60) for terminal in fronts] == [4, 4, 0, 0, 0]
    assert all(map(is_restored, fronts))
    check(site, latest(site), "failed")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE]
)
def test_a_signal_to_the_front_does_not_touch_the_run(site: Site, go: Path, number: int) -> None:
    front = site.start("run", str(write_scenario(site.folder, WAITS)), "--headless")
    run_dir = reach_stage(site, "on")
    front.send_signal(number)
    if number != signal.SIGPIPE:  # which a Python front ignores
        front.wait(timeout=60)
    go.touch()

    _, err = front.communicate(timeout=60)

    assert "Traceback" not in err
    check(site, run_dir, "succeeded")


@pytest.mark.timeout(180)
def test_ctrl_c_while_it_starts_leaves_nothing_that_runs(site: Site) -> None:
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


def test_two_who_watch_may_both_stop_it(site: Site) -> None:
    run_dir = site.detach(write_scenario(site.folder, ASLEEP))
    reach_stage(site, "on")
    watching = [site.start("attach", "last") for _ in range(2)]

    stopping = [site.start("stop", "last") for _ in range(4)]

    said = [front.communicate(timeout=60)[0] for front in stopping]
    ends = [front.communicate(timeout=60) and front.returncode for front in watching]
    assert all("asked " in words or "is over already: stopped" in words for words in said)
    assert ends == [4, 4]
    check(site, run_dir, "stopped")


def test_the_widest_umask_opens_nothing(site: Site) -> None:
    path = write_scenario(site.folder, 'print("hello")\nlab.artifact("a.txt", "kept")\nlab.claim("one is one", True)')

    done = site.run("run", str(path), "--headless", command=["bash", "-c", 'umask 000; exec "$@"', "-", TUILAB])
    site.run("list", command=["bash", "-c", 'umask 000; exec "$@"', "-", TUILAB])

    assert done.returncode == 0
    check(site, latest(site), "succeeded")
    assert site.root.stat().st_mode & 0o777 == 0o700
    assert {entry.stat().st_mode & 0o777 for entry in site.root.iterdir() if entry.is_file()} <= {0o600}


# ---- over ssh


def test_ssh_that_starts_a_detached_run_returns_while_it_goes_on(site: Site, ssh: Ssh, go: Path) -> None:
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
def test_a_run_outlives_the_ssh_client_that_watched_it(site: Site, ssh: Ssh, go: Path, options: tuple[str, ...]) -> None:
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


def test_a_link_that_freezes_does_not_hold_up_the_run(site: Site, ssh: Ssh, go: Path) -> None:
    path = write_scenario(site.folder, WAITS.replace("lab.log(1", "print('x' * 1_000_000)\nlab.log(1"))
    client = ssh.start(f"run {path} --jsonl", "-tt")
    run_dir = reach_stage(site, "on")
    client.send_signal(signal.SIGSTOP)
    go.touch()

    until(lambda: look(run_dir).state in FINAL_STATES)
    client.kill()

    check(site, run_dir, "succeeded")
