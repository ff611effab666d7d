"""Fronts: scenarios to watch, the processes that watch them, and what a front shows and does."""

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
Window = Callable[..., Tmux]
LOOKS = [
    "l",
    "o",
    "t",
    "n",
    "z",
    "z",
    "\t",
    "+",
    "-",
    "\x1b[C",
    "\x1b[D",
    "m",
]  # keys that draw something else


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


def is_whole(picture: str) -> bool:
    """Whether a picture begins with the heading of the run and ends with the keys, and has no line in between twice."""
    lines = picture.splitlines()
    has_keys = (
        lines[-1].lstrip().startswith(("s stop", "a rerun"))
    )  # while the run goes on, and when it is over
    return "probe" in lines[0] and has_keys and sum("probe ·" in line for line in lines) == 1


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
    assert term.process.poll() is None, (
        term.process.returncode,
        bytes(term.sent[-1500:]),
        term.text,
    )
