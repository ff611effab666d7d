"""Run screens in a real terminal, and measure what they send and what they cost."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.pairs import Missing
from benchmarks.processes import INSTALL, environment, find_program, reap

if TYPE_CHECKING:
    from tests.tui.terminals import Terminal

QUIET_S = 0.5  # without a byte: then a screen is complete
REST_S = 1.5  # with hardly any processor time: then a process rests
RESTING_S = 0.02  # the processor time that counts as hardly any: clocks still change


@contextlib.contextmanager
def open_terminal(place: Path, *words: str, limit: int = 0) -> "Iterator[Terminal]":
    """Open a command in a terminal of 120x40, and close the terminal at the end."""
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
def open_tuilab(place: Path, *words: str, limit: int = 0) -> "Iterator[Terminal]":
    """Open tuilab in such a terminal."""
    with open_terminal(place, find_program("tuilab"), *words, limit=limit) as opened:
        yield opened


def wait_until_shown(term: "Terminal", *words: str) -> float:
    """Wait until words are on the screen; return the seconds that this took."""
    began = time.perf_counter()
    term.wait_for(*words)
    return time.perf_counter() - began


def wait_until_quiet(term: "Terminal") -> None:
    """Wait until the screens send nothing more."""
    sent_bytes = -1
    changed_s = 0.0
    while sent_bytes != len(term.sent) or time.monotonic() - changed_s < QUIET_S:
        if sent_bytes != len(term.sent):
            sent_bytes = len(term.sent)
            changed_s = time.monotonic()
        time.sleep(0.01)


def wait_until_rest(read_processor_s: Callable[[], float]) -> float:
    """Wait until some processes rest; return when their last work was, by the clock perf_counter.

    `read_processor_s` returns the processor time of these processes so far.
    """
    busy_processor_s = -1.0
    busy_s = time.perf_counter()
    while time.perf_counter() - busy_s < REST_S:
        now_processor_s = read_processor_s()
        if now_processor_s - busy_processor_s > RESTING_S:
            busy_processor_s = now_processor_s
            busy_s = time.perf_counter()
        time.sleep(0.02)
    return busy_s


def processor_s(term: "Terminal") -> float:
    """Return the processor time of the screens so far."""
    times = psutil.Process(term.process.pid).cpu_times()
    return float(times.user + times.system)


def children_s(term: "Terminal") -> float:
    """Return the processor time of the children of the screens: of the worker that is ready."""
    children = psutil.Process(term.process.pid).children(recursive=True)
    return float(sum(child.cpu_times().user for child in children))


def measure_span(term: "Terminal", span_s: float) -> dict[str, float]:
    """Return what the screens send and cost over a span."""
    sent_before = len(term.sent)
    processor_before_s = processor_s(term)
    began = time.perf_counter()
    time.sleep(span_s)
    elapsed_s = time.perf_counter() - began
    memory = psutil.Process(term.process.pid).memory_info().rss
    sent_bytes = len(term.sent) - sent_before
    spent_s = processor_s(term) - processor_before_s
    return {
        "B/s": sent_bytes / elapsed_s,
        "% of a core": 100 * spent_s / elapsed_s,
        "MiB": memory / 2**20,
    }


def stop_run(term: "Terminal") -> None:
    """Stop the run that the screen shows."""
    term.type("s")
    term.wait_for("Stop this run?")
    term.type("y")
    term.wait_for("stopped")
