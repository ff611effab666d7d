"""Measure the screens at 120x40, next to a bare Textual app.

The rows are the first picture, the idle screens, the time from enter to the first point, and a slow
link.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measurement, Row, in_rounds
from benchmarks.processes import PYTHON, find_program
from benchmarks.terminals import (
    children_s,
    measure_span,
    open_terminal,
    open_tuilab,
    processor_s,
    stop_run,
    wait_until_quiet,
    wait_until_rest,
    wait_until_shown,
)

FULL = {"rounds": 7, "starts": 3, "span_s": 10.0, "reading_s": 8.0, "slow_s": 90.0}
TINY = {"rounds": 1, "starts": 1, "span_s": 0.2, "reading_s": 0.2, "slow_s": 0.5}
BARE = "bare Textual"
BARE_APP = """
from textual.app import App
from textual.widgets import Static
class A(App):
    def compose(self): yield Static("softmax")
A().run()
"""
# The scenario imports torch as lessons do, because only they get a worker that has loaded torch.
GROWING = '''"""Curves that grow once a second."""
import math
import time

import torch

from tuilab import Lab


def run(lab: Lab, seconds: int = 300, lines: int = 4) -> None:
    for step in range(seconds):
        losses = {}
        for n in range(lines):
            falling = math.exp(-step / (20 + 9 * n))
            losses[f"loss{n}"] = falling + 0.05 * math.sin(step * (n + 1))
        lab.log(step, **losses)
        time.sleep(1)
'''


def rows(
    place: Path, *, rounds: int, starts: int, span_s: float, reading_s: float, slow_s: float
) -> Iterator[Row]:
    """Yield the rows of the screens, and those of the bare app where it can be compared."""
    bare_app = [PYTHON, "-c", BARE_APP]
    tuilab = [find_program("tuilab")]
    topic = place / "mine" / "try"
    topic.mkdir(parents=True)
    (topic / "aaa.py").write_text(GROWING)

    first = "the Lab, first picture"
    measurements: dict[str, Measurement] = {
        BARE: partial(measure_first_picture, place, bare_app),
        first: partial(measure_first_picture, place, tuilab),
    }
    goals = {(first, "s to the first text"): "1.15 times", (first, "bytes"): "17,000"}
    yield from in_rounds(measurements, rounds, goals, beside=BARE)

    bare_idle = f"{BARE}, idle"
    idle = "the Lab, idle"
    measurements = {
        bare_idle: partial(measure_idle, place, bare_app, span_s),
        idle: partial(measure_idle, place, tuilab, span_s),
    }
    goals = {
        (idle, "B/s"): "0",
        (idle, "% of a core"): "under 1 %",
        (idle, "MiB"): "under 115",
    }
    yield from in_rounds(measurements, starts, goals, beside=bare_idle, is_warmed=False)

    cold = "enter to the first point, cold"
    warm = "enter to the first point, warm"
    measurements = {
        cold: partial(time_first_point, place, 0),
        warm: partial(time_first_point, place, reading_s),
    }
    goals = {(warm, "s"): "0.2 s"}
    yield from in_rounds(measurements, starts, goals, beside=cold, is_warmed=False)

    link = "a link of 10 KB/s"
    measurements = {link: partial(measure_slow_link, place, slow_s)}
    goals = {(link, "s old at most"): "3 s", (link, "s to a key"): "1 s"}
    yield from in_rounds(measurements, 1, goals)


def measure_first_picture(place: Path, command: list[str]) -> dict[str, float]:
    """Return the cost of an app until its first text, and the bytes of its first picture."""
    with open_terminal(place, *command) as term:
        shown_s = wait_until_shown(term, "softmax")
        spent_s = processor_s(term)
        wait_until_quiet(term)
        return {
            "s to the first text": shown_s,
            "processor s to it": spent_s,
            "bytes": len(term.sent),
        }


def measure_idle(place: Path, command: list[str], span_s: float) -> dict[str, float]:
    """Return the cost of an app while nobody uses it."""
    with open_terminal(place, *command) as term:
        term.wait_for("softmax")
        time.sleep(span_s / 2)
        return measure_span(term, span_s)


def time_first_point(place: Path, reading_s: float) -> dict[str, float]:
    """Return the seconds from the key that starts a scenario to the first point on a chart.

    The user reads for `reading_s` before that. If it is 0, the worker is not ready yet.
    """
    keys_to_scenario = (("/", "words to filter by"), ("aaa", " 1 of "), ("\r", "try/aaa"))
    with open_tuilab(place, "--scenarios", str(place / "mine")) as term:
        term.wait_for("softmax")
        if reading_s:
            time.sleep(reading_s)
            wait_until_rest(partial(children_s, term))
        for keys, answer in keys_to_scenario:
            term.type(keys)
            term.wait_for(answer)
        term.type("\r")
        elapsed_s = wait_until_shown(term, "loss0")
        stop_run(term)
        return {"s": elapsed_s}


def measure_slow_link(place: Path, after_s: float) -> dict[str, float]:
    """Return how old the text on a slow link is after a while, and how long a key takes."""
    scenario = str(place / "mine" / "try" / "aaa.py")
    with open_tuilab(place, "run", scenario, limit=10_000) as term:
        term.wait_for("loss0")
        time.sleep(after_s)
        ages_s = []
        for _ in range(10):
            time.sleep(min(0.5, after_s / 10))
            ages_s.append(term.age_s())
        began = time.perf_counter()
        text_before = term.text
        term.type("z")
        while term.text == text_before:
            time.sleep(0.01)
        key_s = time.perf_counter() - began
        stop_run(term)
        return {"s old at most": max(ages_s), "s to a key": key_s}
