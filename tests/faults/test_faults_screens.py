"""The Run screen and what can happen to its terminal: the run goes on, the terminal is given back, the machine is not eaten."""

import contextlib
import fcntl
import math
import os
import random
import shlex
import shutil
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import TUILAB
from tests.engine import look, until, write_scenario
from tests.faults.conftest import Ssh
from tests.faults.oracle import Site, carrying, check, fabricate, reach_stage, run_started
from tests.tui.pictures import recorded
from tests.tui.terminals import Terminal
from tests.tui.tmux import Tmux
from tuilab.record import events
from tuilab.tui.terminal.guardian import RESTORE

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


def soon_s() -> float:
    """Return for how long something that takes two seconds may take on a box that has other work, too."""
    return 5.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@pytest.fixture
def screens(site: Site) -> Iterator[Open]:
    """Open `tuilab ...` in a terminal of its own, in the environment of the site; each is closed at the end."""
    opened: list[Terminal] = []

    def open_one(*words: str, command: tuple[str, ...] = (TUILAB,), **more: Any) -> Terminal:
        opened.append(Terminal(*command, *words, **{"env": site.environment, **more}))
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
            if process.cmdline()[1:2] == [TUILAB]:  # the interpreter comes first
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
    return float(after.user + after.system - before.user - before.system) / span_s


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

    until(lambda: is_gone(site), patience_s=soon_s())
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

    assert share < 0.5  # what goes round and round takes all of a core; how little is little, a busy box decides
    assert grown < 20e6
    assert len(term.sent) - seen < 50_000  # three whole frames; a backlog would be hundreds
    term.type("q")
    assert term.wait() == 0
    check(site, run_dir, "succeeded")


def test_a_frozen_link_that_is_cut_ends_the_front_and_not_the_run(site: Site, ssh: Ssh, screens: Open, go: Path) -> None:
    term = screens(command=ssh_command(ssh, f"run {write_scenario(site.folder, NOISY)}"))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "loss")
    term.process.send_signal(signal.SIGSTOP)
    wait_for_points(run_dir, 500)
    term.process.kill()

    until(lambda: is_gone(site), patience_s=soon_s())
    wait_for_points(run_dir, 100)
    go.touch()
    check(site, run_dir, "succeeded")


# ---- a terminal that goes away


ANOTHER_SESSION = ("setsid", "--wait", TUILAB)  # to which the end of the terminal is not told


@pytest.mark.parametrize("command", [(TUILAB,), ANOTHER_SESSION], ids=["told", "not told"])
@pytest.mark.parametrize("is_stopped", [False, True], ids=["awake", "stopped"])
def test_a_front_whose_terminal_is_gone_leaves(
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

    until(lambda: is_gone(site), patience_s=soon_s())
    assert look(run_dir).state == "running"
    go.touch()
    check(site, run_dir, "succeeded")


# ---- a terminal that takes nothing


@pytest.mark.parametrize("answers", [True, False], ids=["answers", "never answers"])
def test_a_terminal_that_stops_reading_holds_nothing_up(site: Site, screens: Open, go: Path, answers: bool) -> None:
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

    assert share < 0.5  # what goes round and round takes all of a core; how little is little, a busy box decides
    assert grown < 20e6
    term.type("q")
    assert term.wait() == 0
    assert term.is_restored()
    check(site, run_dir, "succeeded")


def test_a_front_whose_terminal_takes_nothing_can_be_ended(site: Site, screens: Open, go: Path) -> None:
    term = screens("run", str(write_scenario(site.folder, NOISY)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "loss")
    term.stop_reading()
    fill(term)
    term.process.send_signal(signal.SIGTERM)

    assert term.process.wait(soon_s()) == 130
    term.read_again()
    until(term.is_restored)
    until(lambda: is_gone(site))
    go.touch()
    check(site, run_dir, "succeeded")


def test_a_run_can_be_stopped_and_left_while_the_terminal_takes_nothing(site: Site, screens: Open, go: Path) -> None:
    term = screens("run", str(write_scenario(site.folder, NOISY)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "loss")
    term.stop_reading()
    fill(term)
    term.type("s")
    until(lambda: look(run_dir).state == "stopped")
    term.type("q")

    assert term.process.wait(soon_s()) == 0
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


# ---- signals


@pytest.mark.parametrize(
    "number, code",
    [
        (signal.SIGTERM, 130),
        (signal.SIGINT, 130),
        (signal.SIGQUIT, 130),
        (signal.SIGHUP, 0),
        (signal.SIGKILL, -9),
        (signal.SIGSEGV, -11),
        (signal.SIGABRT, -6),
        (signal.SIGUSR1, -10),
        (signal.SIGPIPE, None),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_signal_to_the_screens_does_not_touch_the_run(
    site: Site, screens: Open, go: Path, number: int, code: int | None
) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    term.process.send_signal(number)
    if code is None:
        term.type("q")

    assert term.wait() == (code or 0)
    until(term.is_restored)
    until(lambda: is_gone(site))
    assert term.strange() == []
    assert b"Traceback" not in term.sent
    id = run_dir.name.rpartition("-")[2].encode()
    farewell = b"goes on.  Come back: tuilab attach " + id
    assert (farewell in term.sent) == (code is None or code >= 0)
    go.touch()
    check(site, run_dir, "succeeded")


def test_stopped_without_a_warning_and_continued_it_gives_the_terminal_back_all_the_same(
    site: Site, screens: Open, go: Path
) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    threads = psutil.Process(term.process.pid).num_threads()
    for _ in range(2):
        term.process.send_signal(signal.SIGSTOP)
        until(lambda: psutil.Process(term.process.pid).status() == psutil.STATUS_STOPPED)
        term.wipe()
        term.process.send_signal(signal.SIGCONT)
        term.wait_for("running", "half")
    more_threads = psutil.Process(term.process.pid).num_threads() - threads
    go.touch()
    term.wait_for("succeeded", "the last stage")
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored()
    assert more_threads == 0
    check(site, run_dir, "succeeded")


# ---- in tmux


Window = Callable[..., Tmux]


@pytest.fixture
def window(site: Site) -> Iterator[Window]:
    """Open a window of tmux with a command in it; the server ends with the test."""
    opened: list[Tmux] = []

    def open_one(*command: str, **more: str) -> Tmux:
        opened.append(Tmux(site.folder, {**site.environment, **more}, *command))
        return opened[-1]

    yield open_one
    for tmux in opened:
        tmux.close()


def is_whole(picture: str) -> bool:
    """Whether a picture begins with the heading of the run and ends with the keys, and has no line in between twice."""
    lines = picture.splitlines()
    has_keys = lines[-1].lstrip().startswith(("s stop", "a again"))  # while the run goes on, and when it is over
    return "probe" in lines[0] and has_keys and sum("probe ·" in line for line in lines) == 1


def test_a_tmux_session_that_is_left_and_entered_in_another_size_shows_the_run(
    site: Site, window: Window, screens: Open, go: Path
) -> None:
    tmux = window(TUILAB, "run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    client = screens("attach", command=tuple(tmux.command), env=tmux.env)
    client.wait_for("running", "half")
    tmux.ask("detach-client")
    client.wait()
    screens("attach", command=tuple(tmux.command), env=tmux.env, columns=90, rows=28)
    until(lambda: len(tmux.picture().splitlines()) == 27 and is_whole(tmux.picture()))
    picture = tmux.picture()
    tmux.keys("C-l")
    go.touch()
    until(lambda: tmux.shows("succeeded", "the last stage"))

    assert "running" in picture and "half" in picture
    assert is_whole(tmux.picture())
    check_leaving(site, tmux, run_dir)


def check_leaving(site: Site, tmux: Tmux, run_dir: Path) -> None:
    tmux.keys("q")
    until(lambda: is_gone(site))
    check(site, run_dir, "succeeded")


def test_suspended_in_tmux_and_resumed_in_another_size_it_shows_the_run(site: Site, window: Window, go: Path) -> None:
    tmux = window("bash", "--norc", "-i")
    tmux.keys(f"{TUILAB} run {write_scenario(site.folder, WAITS)}", "Enter")
    run_dir = reach_stage(site, "on")
    until(lambda: tmux.shows("running", "half"))
    tmux.keys("C-z")
    until(lambda: tmux.shows("Stopped"))
    tmux.ask("resize-window", "-x", "90", "-y", "30")
    tmux.keys("echo a word | rev", "Enter")
    until(lambda: tmux.shows("drow a"))
    go.touch()
    until(lambda: look(run_dir).state == "succeeded")
    tmux.keys("fg", "Enter")
    until(lambda: tmux.shows("succeeded", "the last stage"))

    until(lambda: len(tmux.picture().splitlines()) == 30 and is_whole(tmux.picture()))
    tmux.keys("q")
    until(lambda: tmux.shows("Its result: tuilab attach", "drow a"))
    tmux.keys("echo again | rev", "Enter")
    until(lambda: tmux.shows("niaga"))
    tmux.keys("exit", "Enter")
    check(site, run_dir, "succeeded")


def test_sent_to_the_background_it_stops_again_and_comes_back_when_it_is_asked(site: Site, window: Window, go: Path) -> None:
    tmux = window("bash", "--norc", "-i")
    tmux.keys(f"{TUILAB} run {write_scenario(site.folder, WAITS)}", "Enter")
    run_dir = reach_stage(site, "on")
    until(lambda: tmux.shows("running", "half"))
    tmux.keys("C-z")
    until(lambda: tmux.shows("Stopped"))
    tmux.keys("clear; bg", "Enter")
    until(lambda: tmux.shows("tuilab run", "&"))
    until(lambda: front_of(site).status() == psutil.STATUS_STOPPED)
    tmux.keys("jobs; echo a word | rev", "Enter")
    until(lambda: tmux.shows("Stopped", "drow a"))
    in_the_background = tmux.picture()
    tmux.keys("fg", "Enter")
    until(lambda: tmux.shows("running", "half") and is_whole(tmux.picture()))
    go.touch()
    until(lambda: tmux.shows("succeeded", "the last stage"))
    tmux.keys("q")
    until(lambda: tmux.shows("Its result: tuilab attach", "drow a"))

    assert "running" not in in_the_background
    tmux.keys("exit", "Enter")
    check(site, run_dir, "succeeded")


def test_y_copies_into_the_buffer_of_tmux(site: Site, window: Window, go: Path) -> None:
    tmux = window(TUILAB, "run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    until(lambda: tmux.shows("running", "half"))
    tmux.keys("y")
    until(lambda: tmux.shows("in tmux's buffer"))

    assert tmux.ask("show-buffer") == f"tuilab attach {run_dir.name.rpartition('-')[2]}"
    go.touch()
    check_leaving(site, tmux, run_dir)


def test_a_pane_of_tmux_that_is_killed_ends_the_front_and_not_the_run(site: Site, window: Window, go: Path) -> None:
    tmux = window(TUILAB, "run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    until(lambda: tmux.shows("running", "half"))
    tmux.ask("kill-pane", check=False)

    until(lambda: is_gone(site), patience_s=soon_s())
    assert look(run_dir).state == "running"
    go.touch()
    check(site, run_dir, "succeeded")


def test_a_tmux_that_hangs_does_not_hold_up_the_run(site: Site, window: Window, go: Path) -> None:
    tmux = window(TUILAB, "run", str(write_scenario(site.folder, NOISY)))
    run_dir = reach_stage(site, "on")
    until(lambda: tmux.shows("running", "loss"))
    server = psutil.Process(int(tmux.ask("display", "-p", "#{pid}")))
    server.suspend()
    wait_for_points(run_dir, 1000)
    go.touch()
    until(lambda: look(run_dir).state == "succeeded")
    server.resume()
    until(lambda: tmux.shows("succeeded", "the last line"))

    check_leaving(site, tmux, run_dir)


CUTS = {
    "nothing": "",
    "an escape": "\x1b",
    "a begin": "\x1b[",
    "a colour": "\x1b[38;2;1",
    "a string": "\x1b]22;poi",
    "half a character": "\xe2\x96",
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_killed_in_the_middle_of_a_sequence_it_leaves_a_terminal_that_works(site: Site, window: Window, cut: str) -> None:
    path = site.folder / "cut.py"
    path.write_text(f"""
import os, signal, termios
from tuilab.tui.terminal.guardian import Guardian
Guardian(1).note(True)
modes = termios.tcgetattr(0)
modes[3] &= ~(termios.ISIG | termios.ECHO | termios.ICANON)
termios.tcsetattr(0, termios.TCSANOW, modes)
os.write(1, b"\\x1b[?1049h" + {cut!r}.encode("latin-1"))
os.kill(os.getpid(), signal.SIGKILL)
""")
    tmux = window("bash", "--norc", "-i", PS1="> ")
    tmux.keys(f"{sys.executable} -P {path}; touch {site.folder}/killed", "Enter")
    until((site.folder / "killed").exists)
    until(lambda: tmux.ask("display", "-p", "#{alternate_on}") == "0\n")
    tmux.keys("echo a word | rev", "Enter")
    until(lambda: tmux.shows("drow a"))

    assert "[<u" not in tmux.picture() and "[?1" not in tmux.picture()
    tmux.keys("exit", "Enter")


@pytest.mark.parametrize("kind, is_true", [("truecolor", True), ("", False)])
def test_in_tmux_there_are_as_many_colours_as_promised(site: Site, window: Window, go: Path, kind: str, is_true: bool) -> None:
    tmux = window(TUILAB, "run", str(write_scenario(site.folder, WAITS)), COLORTERM=kind)
    run_dir = reach_stage(site, "on")
    until(lambda: tmux.shows("running", "half"))
    coloured = tmux.picture("-e")

    assert ("[38;2;" in coloured or ";48;2;" in coloured) is is_true
    assert is_true or "38;5;" in coloured
    go.touch()
    check_leaving(site, tmux, run_dir)


# ---- sizes


SIZES = [(1, 1), (2, 3), (10, 3), (3, 60), (30, 8), (60, 20), (300, 100), (1000, 500)]
LOOKS = ["l", "o", "t", "n", "z", "z", "\t", "+", "-", "\x1b[C", "\x1b[D", "m"]  # keys that draw something else


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_recorded_run_is_shown_in_every_size(site: Site, screens: Open, size: tuple[int, int]) -> None:
    run_dir = recorded("tour", site.root)
    term = screens("attach", run_dir.name, columns=size[0], rows=size[1])
    check_looks(term, LOOKS if size[0] < 1000 else ["z"])
    if size[0] >= 60:
        term.wait_for("succeeded", "quit")
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    cut, guardian, _ = bytes(term.sent).partition(RESTORE)
    assert not guardian or not cut.endswith(b"\x1b[?1006l")  # what follows a cut frame could be read as its rest
    assert b"Traceback" not in term.sent


def check_looks(term: Terminal, keys: list[str]) -> None:
    """Press keys that draw, and wait each time until the screens have answered."""
    until(lambda: b"\x1b[?1049h" in term.sent and term.sent.count(b"H") > 1)
    for key in keys:
        term.type(key)
        wait_for_answer(term)


def wait_for_answer(term: Terminal) -> None:
    """Wait until the screens have drawn everything once more, and so have heard what was typed before."""
    frames = term.frames
    term.type("\x0c")
    until(lambda: term.frames > frames or term.process.poll() is not None)
    assert term.process.poll() is None, term.text


def test_a_storm_of_sizes_during_a_run_ends_with_the_right_picture(site: Site, screens: Open, go: Path) -> None:
    term = screens("run", str(write_scenario(site.folder, NOISY)), columns=10, rows=3)
    for number in range(20):  # while it starts
        term.resize(1 + number * 3, 1 + number)
        time.sleep(0.02)  # so that they come at different moments
    run_dir = reach_stage(site, "on")
    for number in range(100):
        term.resize(1 + number * 37 % 300, 1 + number * 11 % 90)
    term.resize(100, 30)
    go.touch()
    term.wait_for("probe", "succeeded", "the last line", "quit")
    wait_for_answer(term)
    picture = term.text
    wait_for_answer(term)

    assert term.text == picture
    assert is_whole(picture)
    term.type("q")
    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    check(site, run_dir, "succeeded")


# ---- what is typed


@pytest.mark.parametrize(
    "junk",
    [
        bytes(range(128, 256)) + b"\xc3\x28\xf0\x9f\x92\xff",
        b"\x1b[200~" + b"sq" * 500_000 + b"\x1b[201~",
        b"\x1b[200~s\x1bs" + b"sq" * 100 + b"\x1b[3~\x1b[201~",
        b"\x1b]11;rgb:ssss/qqqq/ssss\x07\x1bP1+r73;q\x1b\\\x1b_Gsq;s\x1b\\",
        b"\x1b[?64;1;2;4c\x1b[>1;10;0c\x1b[?1;2s\x1b[3;4;5;6q\x1b[24;80R",
        b"\x1b[115;1:1;115x\x1b[97;1:3;97u\x1b[1114112u\x1b[99999999999u",
        b"\x1b[48;0;0;0;0t\x1b[48;65000;65000;1;1t\x1b[<35;1;1M\x1b[<0;99999999999;9M\x1b[<0;5;5M",
    ],
    ids=["no text", "1 MB", "a paste with escapes in it", "answers in strings", "answers", "keys that do not exist", "sizes"],
)
def test_what_is_no_key_does_nothing(site: Site, screens: Open, go: Path, junk: bytes) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    term.type(junk)
    wait_for_answer(term)
    term.wait_for("running", "half", "s stop")
    go.touch()
    term.wait_for("succeeded", "the last stage")
    term.type("q")

    assert term.wait() == 0
    assert b"Traceback" not in term.sent
    check(site, run_dir, "succeeded")


def test_a_paste_whose_end_is_lost_does_not_take_the_keys_with_it(site: Site, screens: Open, go: Path) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    term.type(b"\x1b[200~sqsqsq")
    deadline = time.monotonic() + 30
    while "frozen" not in term.text and time.monotonic() < deadline:
        time.sleep(1.5)  # silence is what ends such a paste
        term.type(" ")
        wait_for_answer(term)

    assert "frozen" in term.text
    assert look(run_dir).state == "running"
    term.type("q")
    assert term.wait() == 0
    go.touch()
    check(site, run_dir, "succeeded")


def test_an_answer_that_comes_late_is_not_left_to_the_shell(site: Site, screens: Open) -> None:
    run_dir = recorded("tour", site.root)
    script = f"{TUILAB} attach {run_dir.name}; read -t 3 line; echo the end"
    term = screens("-c", script, command=("bash",), limit=10_000, columns=60, rows=20)
    term.wait_for("succeeded", "quit")
    until(lambda: term.age_s() == 0)
    term.delay_s = 0.0
    term.type("\x0c")
    until(lambda: term.age_s() > 0)
    term.type("q")  # while a whole frame is on its way
    term.wait_for("the end")

    is_left = b"0n" in term.sent.rpartition(b"\x1b[?1049l")[2]  # the terminal shows what is typed for the shell
    assert not is_left or term.delay_s > 1.5  # longer than anybody waits, on a box with much other work


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_break_nothing(site: Site, screens: Open, go: Path, seed: int) -> None:
    acting = b"sSqQy\r\n\x03\x10\x11\x1a"  # what stops, leaves, copies, suspends, or would run a command
    junk = random.Random(seed).randbytes(3000).translate(None, acting) + b"\x1b" * 2000
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    term.type(junk)
    wait_for_answer(term)
    term.process.send_signal(signal.SIGTERM)

    assert term.wait() == 130
    assert b"Traceback" not in term.sent
    assert term.is_restored() and term.strange() == []
    assert look(run_dir).state == "running"
    go.touch()
    check(site, run_dir, "succeeded")


def test_a_flood_of_keys_stays_in_the_terminal(site: Site, screens: Open, go: Path) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    front = psutil.Process(term.process.pid)
    memory = front.memory_info().rss
    typed: list[int] = []
    threading.Thread(target=flood, args=(term, typed), daemon=True).start()
    until(lambda: sum(typed) > 10_000)
    grown = front.memory_info().rss - memory
    front.send_signal(signal.SIGTERM)

    assert term.process.wait(soon_s()) == 130
    assert grown < 20e6
    go.touch()
    check(site, run_dir, "succeeded")


def flood(term: Terminal, typed: list[int]) -> None:
    """Type a key again and again, as fast as it is taken."""
    with contextlib.suppress(OSError):
        for _ in range(10_000):
            typed.append(os.write(term.ours, b"x" * 100))


# ---- what a run says of itself


POINTERS = ("", "default", "pointer", "text")  # pyte takes the shape of the pointer for a title
EVIL = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m\x85\x08\r\x7f\x0e\x1bP\u202e\u2028\u2066\ufeff [/bold] [red] [@click=app.bell]x[/] $x {y}"
)
HOSTILE = f"""
POINTERS = ("", "default", "pointer", "text")  # pyte takes the shape of the pointer for a title
EVIL = {EVIL!r}
print(EVIL)
print(EVIL, file=sys.stderr, flush=True)
lab.stage(EVIL)
lab.progress(1, 2, unit=EVIL)
lab.text(EVIL, title=EVIL)
for step in range(30): lab.log(step, arm=EVIL, **{{EVIL: step}})
lab._journal.append(events.ImageShown(title=EVIL, rows=2, cols=2, cells="AAECAw==", low=0.0, high=3.0, arm=EVIL))
lab.claim(EVIL, EVIL, equals="x")
lab.claim(EVIL + "!", lacks=EVIL)
lab.artifact("a.txt", EVIL)
lab.stage("on")
while not os.path.exists(os.environ["GO"]): time.sleep(0.01)
raise ValueError(EVIL)
"""


def hostile_scenario(folder: Path) -> Path:
    """Write a scenario whose lesson, parameter and all that it records try to steer a terminal."""
    path = write_scenario(folder, HOSTILE, "from tuilab.record import events")
    text = path.read_text()
    path.write_text(
        text.replace("A scenario for a test.", "A [red]lesson\x1b[2J [/foo].\n\n## Try next\n\x1b[2J [/foo]").replace(
            "lab: Lab", "lab: Lab, word: str = '[/x] \x1b[2J'"
        )
    )
    return path


def check_steady(term: Terminal, *words: str) -> None:
    """Look at a run in every way, leave, and check that nothing but frames was ever sent."""
    term.wait_for(*words)
    check_looks(term, LOOKS)
    term.type("?")
    term.wait_for("esc")
    term.type("\x1b[27u")
    check_looks(term, [])
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    assert term.screen.title.removeprefix(";") in POINTERS and (term.screen.icon_name, term.screen.charset) == ("", 0)
    assert b"owned\x07" not in term.sent


def test_nothing_that_a_run_says_steers_the_terminal(site: Site, screens: Open, go: Path) -> None:
    path = hostile_scenario(site.folder)
    live = screens("run", str(path), "--word", EVIL)
    run_dir = reach_stage(site, "on")
    check_steady(live, "running", "[/bold] [red]")
    attached = screens("attach")
    attached.wait_for("running", "[/bold] [red]")
    go.touch()
    check_steady(attached, "failed", "ValueError", "[/bold] [red]")
    again = screens("replay")
    check_steady(again, "[/bold] [red]", "x1")
    check(site, run_dir, "failed")


def test_nothing_in_a_made_up_record_steers_the_terminal(site: Site, screens: Open) -> None:
    """What no scenario of ours could record, as it may come from another box."""
    run_dir = fabricate(
        site,
        run_started(scenario=EVIL, topic=EVIL, title=EVIL, params={EVIL: EVIL}, changed=[EVIL], claims=[EVIL], argv=[EVIL]),
        events.StateChanged(state="running", reason=EVIL),
        events.WorkerStarted(writer=EVIL, pid=1, start=1, arm=EVIL, env={EVIL: EVIL}, prefix=[EVIL]),
        events.EnvironmentRecorded(part="box", facts={EVIL: EVIL}),
        events.GpuFound(uuid=EVIL, index=0, name=EVIL),
        events.Sampled(processes=1, threads=1, cpu_percent=1.0, rss_bytes=10, gpus={EVIL: {"memory_used_bytes": 5.0, EVIL: 1.0}}),
        events.Unavailable(what="gpu", reason=EVIL),
        events.Unavailable(what="sampler", reason=EVIL),
        events.StageEntered(name=EVIL),
        events.Logged(s=1, v={EVIL: 1.0}, a=EVIL),
        events.Logged(s=2, v={EVIL: math.nan, "big": 1e308}, a=EVIL),
        events.Logged(s=-(2**63), v={EVIL: -math.inf, "big": -1e308}, a=EVIL),
        events.Progressed(done=2**62, total=1, unit=EVIL),
        events.ClaimDeclared(text=EVIL, over=EVIL, under=EVIL, op="at_least", bound=math.inf),
        events.ClaimMeasured(text=EVIL + "2", got=events.Measured(words=EVIL), op="equals", want=events.Measured(words=EVIL), unit=EVIL),
        events.ClaimNotTestable(text=EVIL + "3", needs=EVIL),
        events.RaceStarted(arms=[EVIL], threads=1, device=EVIL, loops={EVIL: 1}),
        events.BlockTimed(arm=EVIL, round=0, slot=0, loops=1, wall_ns=2**62, cpu_ns=0),
        events.RaceFinished(arms=[EVIL], is_same=False, difference=EVIL),
        events.MemoryMeasured(name=EVIL, values={EVIL: math.nan}, arm=EVIL),
        events.ArmFinished(arm=EVIL, writer=EVIL, elapsed_s=math.inf, error=EVIL),
        events.TextShown(text=EVIL * 1000, title=EVIL),
        events.ImageShown(title=EVIL, rows=2**62, cols=2**62, cells=EVIL, low=math.nan, high=-math.inf, arm=EVIL),
        events.ImageShown(title="", rows=1, cols=2, cells="AP8=", low=1e308, high=-1e308),
        events.VerdictReached(text=EVIL, verdict="SUPPORTED", rule="x", why=EVIL, estimate=math.nan, low=-math.inf, high=math.inf),
        events.BoxLacked(needs=EVIL),
        events.ScenarioFailed(type=EVIL, message=EVIL, traceback=EVIL * 100, hint=EVIL),
        events.SamplerEnded(reason=EVIL, restarts=3),
        events.WorkerExited(writer=EVIL, code=1, reason=EVIL, fault=EVIL),
        events.StateChanged(state="failed", reason=EVIL),
    )  # fmt: skip
    (run_dir / "stdout.log").write_text(EVIL * 100)
    (run_dir / "stderr.log").write_bytes(b"\xff\x9b" + EVIL.encode() * 100)
    for verb in ("attach", "replay"):
        check_steady(screens(verb, columns=200, rows=60), "[/bold]", "quit")


# ---- several who watch, and what happens to the files


def test_two_screens_and_a_command_line_may_watch_and_stop_one_run(site: Site, screens: Open, go: Path) -> None:
    terms = [screens("run", str(write_scenario(site.folder, WAITS)))]
    run_dir = reach_stage(site, "on")
    terms.append(screens("attach"))
    headless = site.start("attach", "last", "--headless")
    for term in terms:
        term.wait_for("running", "half")
    for term in terms:
        term.type("s")
    for term in terms:
        term.wait_for("stopped")
        term.type("q")

    assert [term.wait() for term in terms] == [0, 0]
    assert "stopped" in headless.communicate(timeout=30)[0]
    assert all(term.is_restored() for term in terms)
    check(site, run_dir, "stopped")


def remove(run_dir: Path) -> None:
    shutil.rmtree(run_dir, ignore_errors=True)


def replace_by_link(run_dir: Path) -> None:
    run_dir.rename(run_dir.with_name("moved"))
    run_dir.symlink_to("/etc")


@pytest.mark.parametrize("take_away", [remove, replace_by_link])
@pytest.mark.parametrize("verb", ["run", "attach"])
def test_a_run_whose_folder_is_taken_away_is_told_in_a_sentence(
    site: Site, screens: Open, go: Path, take_away: Callable[[Path], None], verb: str
) -> None:
    term = screens("run", str(write_scenario(site.folder, NOISY)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "loss")
    if verb == "attach":
        term.type("q")
        term.wait()
        term = screens("attach")
        term.wait_for("running", "loss")
    take_away(run_dir)
    term.wait_for("cannot read the run")
    check_looks(term, LOOKS)
    term.type("\x1b[27u")
    term.wait_for("Scenarios")
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    assert b"Traceback" not in term.sent
    go.touch()
    until(lambda: not site.living())


def test_garbage_in_a_journal_that_is_watched_is_shown_and_passed_over(site: Site, screens: Open, go: Path) -> None:
    term = screens("run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    stream = next((run_dir / "journal").glob("worker*"))
    with stream.open("ab") as file:
        file.write(b"\x00\xff garbage\n" + b"[" * 100_000 + b"\n" + EVIL.encode() + b"\n")
    term.wait_for("the record is not whole")
    go.touch()
    term.wait_for("succeeded", "the last stage", "not whole")
    term.type("q")

    assert term.wait() == 0
    assert term.strange() == []
    check(site, run_dir, "succeeded", is_whole=False)


# ---- other terminals, and who watches over them


def test_standard_error_in_a_file_stays_empty(site: Site, screens: Open) -> None:
    with (site.folder / "log").open("w") as log:
        term = screens("attach", recorded("tour", site.root).name, stderr=log.fileno())
    term.wait_for("succeeded", "quit")
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored() and term.strange() == []
    assert (site.folder / "log").read_text() == ""


@pytest.mark.parametrize(
    "kind, words",
    [({"TERM": "dumb"}, "TERM=dumb"), ({"TERM": ""}, "cannot place text"), ({}, "cannot place text")],
    ids=["dumb", "empty", "none"],
)
def test_a_terminal_that_cannot_place_text_gets_a_sentence(site: Site, screens: Open, kind: dict[str, str], words: str) -> None:
    run_dir = recorded("tour", site.root)
    site.environment.pop("TERM", None)
    refused = screens("replay", run_dir.name, kind=kind)

    assert refused.wait() == 2
    assert words in refused.text and b"\x1b" not in refused.sent
    assert is_gone(site)


def test_without_a_keyboard_the_result_is_printed(site: Site, screens: Open) -> None:
    run_dir = recorded("tour", site.root)
    term = screens(command=("sh", "-c", f"{TUILAB} attach {run_dir.name} </dev/null; {TUILAB} </dev/null; echo rc=$?"))
    term.wait()

    assert "there is no terminal, so no screens open here" in term.text and "rc=2" in term.text
    assert b"\x1b[?1049h" not in term.sent
    assert is_gone(site)


@pytest.mark.parametrize(
    "kind", [{"NO_COLOR": "1", "LC_ALL": "C.UTF-8"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "NO_COLOR": "1"}]
)
def test_a_terminal_gets_what_it_can_show(site: Site, screens: Open, go: Path, kind: dict[str, str]) -> None:
    (site.folder / "λ").mkdir()
    term = screens("run", str(write_scenario(site.folder / "λ", WAITS)), kind={"TERM": "xterm-256color", **kind})
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    check_looks(term, LOOKS)
    colours = {colour for row in term.screen.buffer.values() for cell in row.values() for colour in (cell.fg, cell.bg)}
    term.type("q")

    assert term.wait() == 0
    until(lambda: b"goes on." in term.sent)
    assert term.is_restored() and term.strange() == []
    assert bytes(term.sent).isascii() is (kind["LC_ALL"] != "C.UTF-8")
    assert all(map(is_grey, colours)) is ("NO_COLOR" in kind)
    go.touch()
    check(site, run_dir, "succeeded")


def is_grey(colour: str) -> bool:
    return colour == "default" or colour[:2] == colour[2:4] == colour[4:]


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("setpriv") is None, reason="taking a terminal away takes root and setpriv")
@pytest.mark.parametrize("ending, code", [("q", 0), (signal.SIGKILL, -9)], ids=["in order", "sudden"])
def test_a_terminal_whose_name_belongs_to_another_user_is_used_and_given_back(
    site: Site, screens: Open, ending: "str | int", code: int
) -> None:
    """As after `su`."""
    run_dir = recorded("tour", site.root)
    lose = "chown 65534 $(tty) && chmod 600 $(tty) && exec setpriv --bounding-set=-dac_override,-dac_read_search "
    term = screens(command=("sh", "-c", f"{lose} {TUILAB} attach {run_dir.name}"))
    term.wait_for("succeeded", "quit")
    if isinstance(ending, str):
        term.type(ending)
    else:
        term.process.send_signal(ending)

    assert term.wait() == code
    until(term.is_restored)
    until(lambda: is_gone(site))


def test_ctrl_c_while_the_screens_load_leaves_no_trace(site: Site, screens: Open) -> None:
    run_dir = recorded("tour", site.root)
    began = time.monotonic()
    term = screens("attach", run_dir.name)
    term.wait_for("succeeded", "quit")
    loading_s = time.monotonic() - began
    term.type("q")
    term.wait()
    for number in range(7):
        term = screens("attach", run_dir.name)
        until(lambda: catches(term.process.pid, signal.SIGALRM))  # noqa: B023  # before that Ctrl-C is the interpreter's
        time.sleep(loading_s * number / 6)  # the moment
        term.process.send_signal(signal.SIGINT)

        assert term.wait() == 130
        until(lambda: is_gone(site))
        assert term.is_restored()
        assert b"Traceback" not in term.sent and b"Exception ignored" not in term.sent


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    rows = dict(row.split(":\t") for row in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(rows["SigCgt"], 16) >> (number - 1) & 1)


def test_killed_while_suspended_it_leaves_the_terminal_to_the_shell(site: Site, screens: Open) -> None:
    run_dir = recorded("tour", site.root)
    term = screens("--norc", "-i", command=("bash",))
    term.type(f"{TUILAB} attach {run_dir.name}\n")
    term.wait_for("succeeded", "quit")
    front = front_of(site)
    term.type("\x1a")
    term.wait_for("Stopped")
    seen = len(term.sent)
    front.kill()
    until(lambda: is_gone(site))

    assert b"\x1b[?1049l" not in term.sent[seen:]
    term.type("echo a word | rev\n")
    term.wait_for("drow a")
