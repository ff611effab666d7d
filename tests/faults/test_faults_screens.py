"""The Run screen and what can happen to its terminal: the run goes on, the terminal is given back, the machine is not eaten."""

import fcntl
import shlex
import signal
import struct
import termios
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
from tests.tui.tmux import Tmux

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
        opened.append(Terminal(*command, *words, **{"env": site.environment, **more}))  # type: ignore[arg-type]
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

    assert share < 0.05
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

    until(lambda: is_gone(site), patience_s=2)
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

    until(lambda: is_gone(site), patience_s=2)
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

    assert share < 0.05
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

    assert term.process.wait(3) == 130
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

    assert term.process.wait(3) == 0
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
    return struct.unpack("i", fcntl.ioctl(term.ours, termios.FIONREAD, b"\0" * 4))[0]  # type: ignore[no-any-return]


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
    return "probe" in lines[0] and lines[-1].lstrip().startswith("s stop") and sum("probe ·" in line for line in lines) == 1


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

    until(lambda: is_gone(site), patience_s=2)
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
