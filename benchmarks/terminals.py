"""Screens in a real terminal: what comes over the line, and what the front takes meanwhile."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.pairs import Missing
from benchmarks.processes import INSTALL, command, environment, reap

if TYPE_CHECKING:
    from tests.tui.terminals import Terminal

QUIET_S = 0.5  # after which a screen is whole
REST_S = 1.5  # in which who rests
RESTING_S = 0.02  # takes no more: clocks go on


@contextlib.contextmanager
def terminal(place: Path, *words: str, limit: int = 0) -> "Iterator[Terminal]":
    """Open a command in a terminal of 120x40."""
    try:
        from tests.tui.terminals import Terminal
    except ModuleNotFoundError as problem:
        raise Missing(f"no {problem.name}; {INSTALL}") from problem
    opened = Terminal(*words, env=environment(place), limit=limit)
    try:
        yield opened
    finally:
        opened.close()
        reap()


@contextlib.contextmanager
def tuilab(place: Path, *words: str, limit: int = 0) -> "Iterator[Terminal]":
    with terminal(place, command("tuilab"), *words, limit=limit) as opened:
        yield opened


def until_shown(term: "Terminal", *words: str) -> float:
    """Return the seconds until words are on the screen."""
    began = time.perf_counter()
    term.wait_for(*words)
    return time.perf_counter() - began


def until_quiet(term: "Terminal") -> None:
    """Wait until nothing more comes."""
    sent, since = -1, 0.0
    while sent != len(term.sent) or time.monotonic() - since < QUIET_S:
        if sent != len(term.sent):
            sent, since = len(term.sent), time.monotonic()
        time.sleep(0.01)


def until_rest(spent_s: Callable[[], float]) -> float:
    """Wait until some processes take hardly any time of processors any more; return since when."""
    before, since = -1.0, time.perf_counter()
    while time.perf_counter() - since < REST_S:
        if (now := spent_s()) - before > RESTING_S:
            before, since = now, time.perf_counter()
        time.sleep(0.02)
    return since


def processor_s(term: "Terminal") -> float:
    """Return the seconds of processors that the front took so far."""
    times = psutil.Process(term.process.pid).cpu_times()
    return float(times.user + times.system)


def children_s(term: "Terminal") -> float:
    """Return the seconds of processors of what the front has started: of the worker that waits for a run."""
    return float(
        sum(
            child.cpu_times().user
            for child in psutil.Process(term.process.pid).children(recursive=True)
        )
    )


def spent(term: "Terminal", span_s: float) -> dict[str, float]:
    """Return what a front sends and takes over a span."""
    sent, before, began = len(term.sent), processor_s(term), time.perf_counter()
    time.sleep(span_s)
    took = time.perf_counter() - began
    memory = psutil.Process(term.process.pid).memory_info().rss
    return {
        "B/s": (len(term.sent) - sent) / took,
        "% of a core": 100 * (processor_s(term) - before) / took,
        "MiB": memory / 2**20,
    }


def stop(term: "Terminal") -> None:
    """Stop the run that is shown."""
    term.type("s")
    term.wait_for("Stop this run?")
    term.type("y")
    term.wait_for("stopped")
