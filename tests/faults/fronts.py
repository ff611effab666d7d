"""Clients in tests of faults: scenarios to watch, the processes of screens, and what they show."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.conftest import TUILAB
from tests.engine import look, until
from tests.faults.sites import Site, carrying
from tests.tui.terminals import Terminal
from tests.tui.tmux import Tmux

WAITS = """
lab.log(0, half=0.0)
lab.stage("on")
while not os.path.exists(os.environ["GO"]): time.sleep(0.01)
lab.log(1, half=0.5)
lab.stage("the last stage")
"""
# It prints and logs 500 lines and points a second, until the test lets it end.
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
Window = Callable[..., Tmux]
LOOKS = [*"lotnzz\t+-", "\x1b[C", "\x1b[D", "m"]  # keys that change the picture


def fronts(site: Site) -> list[psutil.Process]:
    """Return the processes of the screens: the client itself and its guardian."""
    processes = []
    for pid in carrying(site.environment["TUILAB_SITE"]):
        try:
            process = psutil.Process(pid)
            if process.cmdline()[1:2] == [TUILAB]:  # the interpreter comes first
                processes.append(process)
        except psutil.NoSuchProcess:
            continue
    return processes


def front_of(site: Site) -> psutil.Process:
    """Wait for the one client of a site, and return its process. The guardian is its child."""

    def find_client() -> psutil.Process | None:
        processes = fronts(site)
        pids = {process.pid for process in processes}
        clients = [process for process in processes if process.ppid() not in pids]
        if len(clients) == 1 and len(processes) == 2:
            return clients[0]
        return None

    return until(find_client)


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
    """Whether no client and no guardian is left."""
    return not fronts(site)


def is_whole(picture: str) -> bool:
    """Whether a picture has the heading of the run first, the keys last, and the heading only once."""
    lines = picture.splitlines()
    # The first key is for a running run, the second for a finished run.
    has_keys = lines[-1].lstrip().startswith(("s stop", "a rerun"))
    heading_count = sum("probe ·" in line for line in lines)
    return "probe" in lines[0] and has_keys and heading_count == 1


def check_looks(term: Terminal, keys: list[str]) -> None:
    """Press keys that change the picture, and wait each time until the screens have drawn."""
    until(lambda: b"\x1b[?1049h" in term.sent and term.sent.count(b"H") > 1)
    for key in keys:
        term.type(key)
        wait_for_answer(term)


def wait_for_answer(term: Terminal) -> None:
    """Wait until the screens have drawn everything again, after all keys that were typed before."""
    frames = term.frames
    term.type("\x0c")
    until(lambda: term.frames > frames or term.process.poll() is not None)
    assert term.process.poll() is None, (
        term.process.returncode,
        bytes(term.sent[-1500:]),
        term.text,
    )
