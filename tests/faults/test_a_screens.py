"""The screens under signals and in tmux: left, suspended, resized, killed, they give the terminal back."""

import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import TUILAB
from tests.engine import look, until, write_scenario
from tests.faults.fronts import (
    NOISY,
    WAITS,
    Open,
    Window,
    front_of,
    is_gone,
    is_whole,
    wait_for_points,
)
from tests.faults.oracle import check
from tests.faults.sites import Site, reach_stage
from tests.faults.soaked.long_lived_processes import open_screens
from tests.tui.pictures import recorded
from tests.tui.tmux import Tmux

pytestmark = pytest.mark.faults

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
def test_7_8_a_signal_to_the_screens_does_not_touch_the_run(
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
    farewell = b"1 run continues: tuilab attach " + id
    assert (farewell in term.sent) == (code is None or code >= 0)
    go.touch()
    check(site, run_dir, "succeeded")


def test_87_what_screens_held_that_were_left_is_given_back(site: Site) -> None:
    """Each visit to a run makes some 3 MB of widgets, which hold each other."""
    run_dir = recorded("tour", site.root)
    screens = open_screens(site)
    try:
        screens.look_on(run_dir)
        screens.wait_for_scipy()
        for _ in range(5):  # until all is loaded and the caches are full
            screens.look_on(run_dir)
        before = screens.meter.read_rss()
        for _ in range(12):
            screens.look_on(run_dir)
        grown = screens.meter.read_rss() - before
    finally:
        screens.close()

    assert grown < 16 << 20  # what waits for the collector is a few visits


def test_14_stopped_without_a_warning_and_continued_it_gives_the_terminal_back_all_the_same(
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


def test_8_ctrl_c_while_the_screens_load_leaves_no_trace(site: Site, screens: Open) -> None:
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


def test_7_14_killed_while_suspended_it_leaves_the_terminal_to_the_shell(
    site: Site, screens: Open
) -> None:
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


# ---- in tmux


def test_10_14_a_tmux_session_that_is_left_and_entered_in_another_size_shows_the_run(
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


def suspended_in_bash(site: Site, window: Window) -> tuple[Tmux, Path]:
    """Run a scenario in a shell of tmux and suspend its screens; return the window and the folder of the run."""
    tmux = window("bash", "--norc", "-i")
    tmux.keys(f"{TUILAB} run {write_scenario(site.folder, WAITS)}", "Enter")
    run_dir = reach_stage(site, "on")
    until(lambda: tmux.shows("running", "half"))
    tmux.keys("C-z")
    until(lambda: tmux.shows("Stopped"))
    return tmux, run_dir


def test_14_suspended_in_tmux_and_resumed_in_another_size_it_shows_the_run(
    site: Site, window: Window, go: Path
) -> None:
    tmux, run_dir = suspended_in_bash(site, window)
    tmux.ask("resize-window", "-x", "90", "-y", "30")
    tmux.keys("echo a word | rev", "Enter")
    until(lambda: tmux.shows("drow a"))
    go.touch()
    until(lambda: look(run_dir).state == "succeeded")
    tmux.keys("fg", "Enter")
    until(lambda: tmux.shows("succeeded", "the last stage"))

    until(lambda: len(tmux.picture().splitlines()) == 30 and is_whole(tmux.picture()))
    tmux.keys("q")
    until(lambda: tmux.shows("drow a") and "succeeded" not in tmux.picture())
    tmux.keys("echo again | rev", "Enter")
    until(lambda: tmux.shows("niaga"))
    tmux.keys("exit", "Enter")
    check(site, run_dir, "succeeded")


def test_14_sent_to_the_background_it_stops_again_and_comes_back_when_it_is_asked(
    site: Site, window: Window, go: Path
) -> None:
    tmux, run_dir = suspended_in_bash(site, window)
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
    until(lambda: tmux.shows("drow a") and "succeeded" not in tmux.picture())

    assert "running" not in in_the_background
    tmux.keys("exit", "Enter")
    check(site, run_dir, "succeeded")


def test_y_copies_into_the_buffer_of_tmux(site: Site, window: Window, go: Path) -> None:
    tmux = window(TUILAB, "run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    until(lambda: tmux.shows("running", "half"))
    tmux.keys("y")
    until(lambda: tmux.shows("to tmux's buffer"))

    assert tmux.ask("show-buffer") == f"tuilab attach {run_dir.name.rpartition('-')[2]}"
    go.touch()
    check_leaving(site, tmux, run_dir)


def test_12_a_pane_of_tmux_that_is_killed_ends_the_front_and_not_the_run(
    site: Site, window: Window, go: Path
) -> None:
    tmux = window(TUILAB, "run", str(write_scenario(site.folder, WAITS)))
    run_dir = reach_stage(site, "on")
    until(lambda: tmux.shows("running", "half"))
    tmux.ask("kill-pane", check=False)

    until(lambda: is_gone(site))
    assert look(run_dir).state == "running"
    go.touch()
    check(site, run_dir, "succeeded")


def test_13_a_tmux_that_hangs_does_not_hold_up_the_run(
    site: Site, window: Window, go: Path
) -> None:
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
def test_7_killed_in_the_middle_of_a_sequence_it_leaves_a_terminal_that_works(
    site: Site, window: Window, cut: str
) -> None:
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
def test_59_in_tmux_there_are_as_many_colours_as_promised(
    site: Site, window: Window, go: Path, kind: str, is_true: bool
) -> None:
    tmux = window(TUILAB, "run", str(write_scenario(site.folder, WAITS)), COLORTERM=kind)
    run_dir = reach_stage(site, "on")
    until(lambda: tmux.shows("running", "half"))
    coloured = tmux.picture("-e")

    assert ("[38;2;" in coloured or ";48;2;" in coloured) is is_true
    assert is_true or "38;5;" in coloured
    go.touch()
    check_leaving(site, tmux, run_dir)
