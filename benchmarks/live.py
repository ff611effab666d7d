"""A run that is watched while it logs: bytes and processor time, beside a bare Textual app with a plotext chart."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.pairs import Row, Way, in_rounds
from benchmarks.processes import PYTHON
from benchmarks.terminals import spent, stop, terminal, tuilab

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
LOGGING = '''"""Lines that grow as often as is asked for."""
import math
import time

from tuilab import Lab


def run(lab: Lab, lines: int = 1, rate: int = 1, seconds: int = 600) -> None:
    began = time.monotonic()
    for step in range(seconds * rate):
        lab.log(step, **{f"loss{n}": math.exp(-step / (20 * rate)) + 0.05 * math.sin(step * (n + 1)) for n in range(lines)})
        time.sleep(max(0.0, began + (step + 1) / rate - time.monotonic()) if step % max(rate // 100, 1) == 0 else 0)
'''
KINDS = (
    ("one chart, 1 point/s", 1, 1),
    ("one chart, 1,000 points/s", 1, 1000),
    ("four charts, 1,000 points/s each", 4, 1000),
)


def rows(place: Path, *, rounds: int, settle_s: float, span_s: float) -> Iterator[Row]:
    (place / "logging_run.py").write_text(LOGGING)
    goals = {}
    ways: dict[str, Way] = {BARE: lambda: bare(place, settle_s, span_s)}
    for name, lines, rate in KINDS:
        ways[name] = partial(watched, place, lines, rate, settle_s, span_s)
        goals[name, "B/s"] = "4,000" if lines > 1 else "1,000"
        goals[name, "% of a core"] = "8 %" if lines > 1 else "3 %"
    yield from in_rounds(ways, rounds, goals, beside=BARE, is_warmed=False)


def bare(place: Path, settle_s: float, span_s: float) -> dict[str, float]:
    with terminal(place, PYTHON, "-c", BARE_APP) as term:
        term.wait_for("loss0")
        time.sleep(settle_s)
        return spent(term, span_s)


def watched(place: Path, lines: int, rate: int, settle_s: float, span_s: float) -> dict[str, float]:
    words = ("run", str(place / "logging_run.py"), "--lines", str(lines), "--rate", str(rate))
    with tuilab(place, *words) as term:
        term.wait_for("loss0")
        time.sleep(settle_s)
        found = spent(term, span_s)
        stop(term)
        return found
