"""What the screens cost in a real terminal: time to the first picture, bytes, processor time, memory, staleness.

    python benchmarks/screens.py [NAME...]

Each line has the figure, and the bar that it should keep; times stand beside those of a bare Textual app, measured in turns.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.tui.terminals import Terminal
from tuilab.record import presence
from tuilab.record.events import Logged, RunStarted, StateChanged
from tuilab.record.journal.writer import Writer

BIN = Path(sys.executable).parent
BARE = """
from textual.app import App
from textual.widgets import Static
class A(App):
    def compose(self): yield Static("softmax")
A().run()
"""
LIVE = '''"""Lines that grow once a second."""
import math
import time

from tuilab import Lab


def run(lab: Lab, seconds: int = 300, lines: int = 4) -> None:
    for step in range(seconds):
        lab.log(step, **{f"loss{n}": math.exp(-step / (20 + 9 * n)) + 0.05 * math.sin(step * (n + 1)) for n in range(lines)})
        time.sleep(1)
'''


def opened(folder: Path, *words: str, limit: int = 0) -> Terminal:
    """Open a command in a terminal with folders of its own."""
    env = {
        **os.environ,
        "TUILAB_ROOT": str(folder / "runs"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # as it is on a user's machine: compiled once
    return Terminal(*words, env=env, limit=limit)


def tuilab(folder: Path, *words: str, limit: int = 0) -> Terminal:
    return opened(folder, str(BIN / "tuilab"), *words, limit=limit)


def until_shown(term: Terminal, word: str) -> float:
    """Return the seconds until a word is on the screen."""
    began = time.monotonic()
    term.wait_for(word)
    return time.monotonic() - began


def say(what: str, figure: str, bar: str) -> None:
    print(f"{what:50} {figure:>30}   {bar}", flush=True)


def spent(term: Terminal, span_s: float) -> tuple[float, float]:
    """Return bytes a second and the share of a core over a span."""
    front = psutil.Process(term.process.pid)
    sent, before = len(term.sent), front.cpu_times()
    time.sleep(span_s)
    after = front.cpu_times()
    return (len(term.sent) - sent) / span_s, (after.user + after.system - before.user - before.system) / span_s


def first_paint(folder: Path) -> None:
    """From the start of the process to the first scenario's name."""
    ours: list[float] = []
    bare: list[float] = []
    for number in range(8):
        for times, words in ((ours, [str(BIN / "tuilab")]), (bare, [sys.executable, "-c", BARE])):
            term = opened(folder, *words)
            taken = until_shown(term, "softmax")
            times += [taken] if number else []  # the first one fills the cache of the catalogue
            term.close()
    say(
        "first paint of the Lab screen", f"{median(ours):.2f} s, bare {median(bare):.2f} s", "at most 0.15 s after the bare app"
    )


def idle(folder: Path) -> None:
    """The Lab screen when nobody does anything."""
    term = tuilab(folder)
    term.wait_for("softmax")
    time.sleep(10)
    rate, share = spent(term, 20)
    memory = psutil.Process(term.process.pid).memory_info().rss
    say("idle Lab screen", f"{rate:.0f} B/s, {share:.2%} of a core", "0 B/s, under 1 %")
    say("memory of the screens", f"{memory / 1e6:.0f} MB", "under 120 MB")
    term.close()


def live(folder: Path) -> None:
    """A run that logs once a second, watched."""
    (folder / "live.py").write_text(LIVE)
    for names, what, bar in ((1, "one live chart, 120x40, 1 Hz", "2 KB/s, 3 %"), (4, "four live charts", "6 KB/s, 8 %")):
        term = tuilab(folder, "run", str(folder / "live.py"), "--lines", str(names))
        term.wait_for("loss0")
        time.sleep(10)
        rate, share = spent(term, 30)
        memory = psutil.Process(term.process.pid).memory_info().rss
        say(what, f"{rate / 1000:.2f} KB/s, {share:.1%}, {memory / 1e6:.0f} MB", f"at most {bar}, 120 MB")
        _stop(term)


def warm_start(folder: Path) -> None:
    """From the key on the Lab screen to the first point on a chart: cold, and after five seconds of reading."""
    mine = folder / "mine" / "try"
    mine.mkdir(parents=True)
    (mine / "aaa.py").write_text(LIVE)
    for what, reading_s, bar in (("cold", 0.0, "2.5 s"), ("warm", 8.0, "0.2 s")):
        term = tuilab(folder, "--scenarios", str(folder / "mine"))
        term.wait_for("aaa")
        time.sleep(reading_s)
        for keys, answer in (("/", "words it must have"), ("aaa", " 1 of "), ("\r", "try/aaa")):
            term.type(keys)
            term.wait_for(answer)
        term.type("\r")
        taken = until_shown(term, "loss0")
        say(f"from enter to the first point, {what}", f"{taken:.2f} s", f"at most {bar}")
        _stop(term)


def slow_link(folder: Path) -> None:
    """A link of 10 KB/s: how old is what is shown after 90 s, and how long does a key take."""
    (folder / "live.py").write_text(LIVE)
    term = tuilab(folder, "run", str(folder / "live.py"), limit=10_000)
    term.wait_for("loss0")
    time.sleep(85)
    ages = []
    for _ in range(10):
        time.sleep(0.5)
        ages.append(term.age_s())
    say("age of what a link of 10 KB/s shows after 90 s", f"{max(ages):.1f} s", "at most 3 s")
    term.type("z")
    say("a key on that link", f"{until_changed(term):.2f} s", "at most 1 s")
    _stop(term)


def until_changed(term: Terminal) -> float:
    """Return the seconds until the screen shows something else."""
    began, before = time.monotonic(), term.text
    while term.text == before:
        time.sleep(0.01)
    return time.monotonic() - began


def long_run(folder: Path) -> None:
    """A record of a million points."""
    run = folder / "runs" / "20260101T000000000Z-long-abcdef"
    (run / "artifacts").mkdir(parents=True)
    (run / "journal").mkdir()
    me = presence.identify(os.getpid())
    assert me is not None
    supervisor, worker = (Writer(run / "journal" / f"{name}.jsonl") for name in ("supervisor", "worker-0"))
    supervisor.append(
        RunStarted(
            format=1, run=run.name, scenario="long", topic="basics", title="", source_sha256="", params={}, supervisor=me,
            tuilab="0", wall_ns=time.time_ns(),
        )
    )  # fmt: skip
    for step in range(1_000_000):
        worker.append(Logged(s=step, v={"loss": 1 / (step + 1)}))
    supervisor.append(StateChanged(state="succeeded"))
    for what in ("a run of 1,000,000 points, first time", "again"):
        began = time.monotonic()
        term = tuilab(folder, "attach", "last")
        term.wait_for("basics/long")
        opened_s = time.monotonic() - began
        term.wait_for("┤", "loss")
        chart_s = time.monotonic() - began
        term.wait_for("succeeded")
        whole_s = time.monotonic() - began
        memory = psutil.Process(term.process.pid).memory_info().rss / 1e6
        figure = f"{opened_s:.1f}, {chart_s:.1f}, {whole_s:.1f} s, {memory:.0f} MB"
        say(f"{what}: screen, chart, all", figure, "chart 1 s after the screen, 120 MB")
        term.close()


def _stop(term: Terminal) -> None:
    term.type("s")
    term.wait_for("Stop this run?")
    term.type("y")
    term.wait_for("stopped")
    term.close()


PARTS: dict[str, Callable[[Path], None]] = {
    "first_paint": first_paint,
    "idle": idle,
    "live": live,
    "warm_start": warm_start,
    "slow_link": slow_link,
    "long_run": long_run,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            PARTS[name](Path(folder))
