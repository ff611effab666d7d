"""Measure the bytes and the CPU time of a run on the screens, next to a bare app with plotext."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measurement, Row, in_rounds
from benchmarks.processes import PYTHON
from benchmarks.terminals import measure_span, open_terminal, open_tuilab, stop_run

FULL = {"rounds": 3, "settle_s": 10.0, "span_s": 30.0}
TINY = {"rounds": 1, "settle_s": 0.2, "span_s": 0.5}
BARE = "plotext in bare Textual"
BARE_APP = """
import math

import plotext
from rich.text import Text
from textual.app import App
from textual.widgets import Static

class A(App):
    def compose(self): yield Static("")
    def on_mount(self):
        self.values = []
        self.set_interval(0.5, self.draw)
    def draw(self):
        for step in range(len(self.values), len(self.values) + 500):
            self.values.append(math.exp(-step / 20_000) + 0.05 * math.sin(step))
        plotext.clf()
        plotext.plotsize(*self.size)
        plotext.plot(self.values, label="loss0")
        self.query_one(Static).update(Text.from_ansi(plotext.build()))
A().run()
"""
LOGGING = '''"""Curves that grow at any rate."""
import math
import time

from tuilab import Lab


def run(lab: Lab, lines: int = 1, rate: int = 1, seconds: int = 600) -> None:
    began = time.monotonic()
    for step in range(seconds * rate):
        falling = math.exp(-step / (20 * rate))
        losses = {f"loss{n}": falling + 0.05 * math.sin(step * (n + 1)) for n in range(lines)}
        lab.log(step, **losses)
        wait_s = 0.0
        if step % max(rate // 100, 1) == 0:
            wait_s = max(0.0, began + (step + 1) / rate - time.monotonic())
        time.sleep(wait_s)
'''
KINDS = (  # name, curves, points of a curve in a second
    ("one chart, 1 point/s", 1, 1),
    ("one chart, 1,000 points/s", 1, 1000),
    ("four charts, 1,000 points/s each", 4, 1000),
)


def rows(place: Path, *, rounds: int, settle_s: float, span_s: float) -> Iterator[Row]:
    """Yield the cost of screens that show one curve or four, next to the bare app."""
    (place / "logging_run.py").write_text(LOGGING)
    measurements: dict[str, Measurement] = {
        BARE: partial(measure_bare_app, place, settle_s, span_s)
    }
    goals = {}
    for name, lines, rate in KINDS:
        measurements[name] = partial(measure_screens, place, lines, rate, settle_s, span_s)
        goals[name, "B/s"] = "4,000" if lines > 1 else "1,000"
        goals[name, "% of a core"] = "8 %" if lines > 1 else "3 %"
    yield from in_rounds(measurements, rounds, goals, beside=BARE, is_warmed=False)


def measure_bare_app(place: Path, settle_s: float, span_s: float) -> dict[str, float]:
    """Return the cost of a bare Textual app that draws a growing curve with plotext."""
    with open_terminal(place, PYTHON, "-c", BARE_APP) as term:
        term.wait_for("loss0")
        time.sleep(settle_s)
        return measure_span(term, span_s)


def measure_screens(
    place: Path, lines: int, rate: int, settle_s: float, span_s: float
) -> dict[str, float]:
    """Return the cost of the screens that show a running run."""
    scenario = str(place / "logging_run.py")
    words = ("run", scenario, "--lines", str(lines), "--rate", str(rate))
    with open_tuilab(place, *words) as term:
        term.wait_for("loss0")
        time.sleep(settle_s)
        cost = measure_span(term, span_s)
        stop_run(term)
        return cost
