"""The screens at 120x40, the first picture, idle, from enter to the first point, on a slow link; beside a bare Textual app."""

import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.pairs import Row, Way, in_rounds
from benchmarks.processes import PYTHON, command
from benchmarks.terminals import (
    children_s,
    processor_s,
    spent,
    stop,
    terminal,
    tuilab,
    until_quiet,
    until_rest,
    until_shown,
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
# It imports torch as lessons do: a worker that has loaded it meanwhile is given to no other.
GROWING = '''"""Lines that grow once a second."""
import math
import time

import torch

from tuilab import Lab


def run(lab: Lab, seconds: int = 300, lines: int = 4) -> None:
    for step in range(seconds):
        lab.log(step, **{f"loss{n}": math.exp(-step / (20 + 9 * n)) + 0.05 * math.sin(step * (n + 1)) for n in range(lines)})
        time.sleep(1)
'''


def rows(
    place: Path, *, rounds: int, starts: int, span_s: float, reading_s: float, slow_s: float
) -> Iterator[Row]:
    bare, ours = [PYTHON, "-c", BARE_APP], [command("tuilab")]
    mine = place / "mine" / "try"
    mine.mkdir(parents=True)
    (mine / "aaa.py").write_text(GROWING)
    lab, idle_bare, idle_lab = "the Lab, first picture", f"{BARE}, idle", "the Lab, idle"
    ways: dict[str, Way] = {
        BARE: lambda: first_picture(place, bare),
        lab: lambda: first_picture(place, ours),
    }
    yield from in_rounds(
        ways,
        rounds,
        {(lab, "s to the first text"): "1.15 times", (lab, "bytes"): "17,000"},
        beside=BARE,
    )

    ways = {
        idle_bare: lambda: idle(place, bare, span_s),
        idle_lab: lambda: idle(place, ours, span_s),
    }
    goals = {
        (idle_lab, "B/s"): "0",
        (idle_lab, "% of a core"): "under 1 %",
        (idle_lab, "MiB"): "under 115",
    }
    yield from in_rounds(ways, starts, goals, beside=idle_bare, is_warmed=False)

    cold, warm = "enter to the first point, cold", "enter to the first point, warm"
    ways = {cold: lambda: first_point(place, 0), warm: lambda: first_point(place, reading_s)}
    yield from in_rounds(ways, starts, {(warm, "s"): "0.2 s"}, beside=cold, is_warmed=False)

    link = "a link of 10 KB/s"
    goals = {(link, "s old at most"): "3 s", (link, "s to a key"): "1 s"}
    yield from in_rounds({link: lambda: slow_link(place, slow_s)}, 1, goals)


def first_picture(place: Path, words: list[str]) -> dict[str, float]:
    """Return what it takes until the first text, and the bytes of the first picture when it is whole."""
    with terminal(place, *words) as term:
        shown_s = until_shown(term, "softmax")
        spent_s = processor_s(term)
        until_quiet(term)
        return {
            "s to the first text": shown_s,
            "processor s to it": spent_s,
            "bytes": len(term.sent),
        }


def idle(place: Path, words: list[str], span_s: float) -> dict[str, float]:
    """Return what is spent when nobody does anything."""
    with terminal(place, *words) as term:
        term.wait_for("softmax")
        time.sleep(span_s / 2)
        return spent(term, span_s)


def first_point(place: Path, reading_s: float) -> dict[str, float]:
    """Return the seconds from the key on the Lab screen to the first point on a chart, at once or after some reading."""
    with tuilab(place, "--scenarios", str(place / "mine")) as term:
        term.wait_for("softmax")
        if reading_s:
            time.sleep(reading_s)
            until_rest(lambda: children_s(term))
        for keys, answer in (("/", "words to filter by"), ("aaa", " 1 of "), ("\r", "try/aaa")):
            term.type(keys)
            term.wait_for(answer)
        term.type("\r")
        taken_s = until_shown(term, "loss0")
        stop(term)
        return {"s": taken_s}


def slow_link(place: Path, after_s: float) -> dict[str, float]:
    """Return how old is what a slow link shows after a while, and how long a key takes."""
    with tuilab(place, "run", str(place / "mine" / "try" / "aaa.py"), limit=10_000) as term:
        term.wait_for("loss0")
        time.sleep(after_s)
        ages = []
        for _ in range(10):
            time.sleep(min(0.5, after_s / 10))
            ages.append(term.age_s())
        began, before = time.perf_counter(), term.text
        term.type("z")
        while term.text == before:
            time.sleep(0.01)
        key_s = time.perf_counter() - began
        stop(term)
        return {"s old at most": max(ages), "s to a key": key_s}
