"""How often the lab is wrong here, and how often it decides: real arms that differ by a known share of their work.

Pairs of arms race in fresh processes, beside so many that keep the cores busy, each pair for so long (2 s is as long as a race
takes that does not say). Groups of processes are judged as a run of as many repeats is, each claim alone: that the second arm
takes at least as long as the first, which is true of all. torch.utils.benchmark measures the same pairs in every process; they
are different where its quartiles lie apart.
"""

import contextlib
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.pairs import Row
from benchmarks.processes import PYTHON, command, output
from tuilab.judging.evidence import gather_evidence
from tuilab.judging.ratio import judge_ratio
from tuilab.record.events import ClaimDeclared
from tuilab.record.live_run import read_run
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import DECISIONS, Verdict

FULL = {"processes": 36, "busy": 0, "seconds": 2.0, "pairs": 13, "group": 6}
TINY = {"processes": 2, "busy": 0, "seconds": 0.02, "pairs": 1, "group": 2}
ENDS_WITH = (0, 1)  # what came of it is judged here
Pair = tuple[str, float]
PAIRS: list[Pair] = [
    *((kind, extra) for kind in ("py", "mem", "own") for extra in (0.0, 0.02, 0.05, 0.2)),
    ("alloc", 0.0),
]
SCENARIO = '''"""Pairs of arms that differ by a known share of their work."""
import statistics
import torch
from torch.utils.benchmark import Timer
from tuilab import Lab

PAIRS = {pairs!r}

def make(kind, extra):
    if kind == "py":
        count = round(20_000 * (1 + extra))
        def work():
            total = 0
            for number in range(count):
                total += number
            return total
    elif kind == "mem":
        a = torch.randn(round(500_000 * (1 + extra)))
        b, out = torch.randn_like(a), torch.empty_like(a)
        work = lambda: torch.add(a, b, out=out)
    elif kind == "own":
        a, count = torch.randn(64, 64), round(100 * (1 + extra))
        def work():
            for _ in range(count):
                a @ a
    else:
        work = lambda: torch.empty(1000)
    return work

def run(lab: Lab) -> None:
    torch.set_num_threads(1)
    for kind, extra in PAIRS:
        name = f"{{kind}} {{extra}}"
        arms = {{f"a {{name}}": lambda: make(kind, 0.0), f"b {{name}}": lambda: make(kind, extra)}}
        lab.race(seconds={seconds!r}, factories=True, **arms)
        for arm, one in arms.items():
            times = Timer("work()", globals={{"work": one()}}).blocked_autorange(min_run_time=0.2).times
            if len(times) > 1:  # a box that is busy enough leaves it one
                low, middle, high = statistics.quantiles(times, n=4)
                lab.log(lab.repeat, arm=arm, low=low, middle=middle, high=high)
'''


def rows(
    place: Path, *, processes: int, busy: int, seconds: float, pairs: int, group: int
) -> Iterator[Row]:
    raced = PAIRS[:pairs]
    with busy_cores(busy):
        summary = measured(place, processes, seconds, raced)
    ours, theirs = verdicts(summary, raced, group), quartiles(summary, raced)
    yield from shares("tuilab", ours, is_decided, is_wrong)
    yield from shares("quartiles of torch.utils.benchmark", theirs, is_apart, is_apart_and_wrong)
    for name, counts in ours.items():
        for word, count in counts.items():
            yield Row(f"{name}: {word}", f"of {counts.total()} groups of {group}", [count])
    for name, counts in theirs.items():
        for word, count in counts.items():
            yield Row(f"{name}: quartiles say {word}", f"of {counts.total()} processes", [count])


@contextlib.contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """Keep as many cores busy meanwhile."""
    others = [
        subprocess.Popen([PYTHON, "-c", "while True: sum(range(100_000))"]) for _ in range(count)
    ]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measured(place: Path, processes: int, seconds: float, pairs: Sequence[Pair]) -> RunSummary:
    """Run the pairs in fresh processes and return the record."""
    scenario = place / "pairs.py"
    scenario.write_text(SCENARIO.format(pairs=pairs, seconds=seconds))
    words = [
        command("tuilab"),
        "run",
        str(scenario),
        "--headless",
        "--quiet",
        "--repeat",
        str(processes),
    ]
    output(words, place, ends_with=ENDS_WITH)
    (run_dir,) = (place / "runs").glob("*-pairs-*")
    return read_run(run_dir)


def verdicts(summary: RunSummary, pairs: Sequence[Pair], size: int) -> dict[str, Counter[str]]:
    """Return how often each verdict was reached, by pair."""
    found: dict[str, Counter[str]] = {}
    for kind, extra in pairs:
        name = f"{kind} {extra}"
        claim = ClaimDeclared(
            text=name, over=f"b {name}", under=f"a {name}", op="at_least", bound=1.0
        )
        counts = found.setdefault(name, Counter())
        for group in groups(summary, size):
            if evidence := gather_evidence(claim, summary, group):
                counts[judge_ratio(claim, evidence).verdict] += 1
    return found


def groups(summary: RunSummary, size: int) -> list[list[str]]:
    workers = sorted(
        name
        for name, worker in summary.workers.items()
        if worker.started and not worker.started.arm
    )
    return [workers[start : start + size] for start in range(0, len(workers) - size + 1, size)]


def quartiles(summary: RunSummary, pairs: Sequence[Pair]) -> dict[str, Counter[str]]:
    """Return in how many processes the quartiles of the two arms lie apart, by pair."""
    found: dict[str, Counter[str]] = {}
    for kind, extra in pairs:
        name = f"{kind} {extra}"
        for worker in summary.workers:
            ends = [
                [summary.series.get((end, f"{arm} {name}", worker)) for end in ("low", "high")]
                for arm in "ab"
            ]
            (low_a, high_a), (low_b, high_b) = ends
            if low_a and high_a and low_b and high_b:
                word = (
                    "faster"
                    if high_b.last < low_a.last
                    else "slower"
                    if low_b.last > high_a.last
                    else "no telling"
                )
                found.setdefault(name, Counter())[word] += 1
    return found


def shares(
    who: str,
    found: dict[str, Counter[str]],
    decides: Callable[[str], bool],
    errs: Callable[[str, str], bool],
) -> Iterator[Row]:
    """Return how much of it was decided, and how much of all wrong."""
    every = [(name, word) for name, counts in found.items() for word in counts.elements()]
    for what, holding in (
        ("decided", [decides(word) for _, word in every]),
        ("wrong", [errs(name, word) for name, word in every]),
    ):
        yield Row(f"{who}, {what}", f"% of {len(every)}", [100 * sum(holding) / len(every)])


def is_decided(word: str) -> bool:
    return word in DECISIONS


def is_wrong(name: str, word: str) -> bool:
    """Say whether a verdict is wrong: REFUTED always is, "no difference" beyond the margin."""
    return word == Verdict.REFUTED or (word == Verdict.NO_DIFFERENCE and extra_of(name) > 0.03)


def is_apart(word: str) -> bool:
    return word != "no telling"


def is_apart_and_wrong(name: str, word: str) -> bool:
    """Say whether quartiles are: equal arms that lie apart, or one with more work as the faster."""
    return is_apart(word) if extra_of(name) == 0 else word == "faster"


def extra_of(name: str) -> float:
    return float(name.split()[1])
