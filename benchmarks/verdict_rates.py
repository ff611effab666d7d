"""Count how often verdicts about time are wrong here, and how often they decide.

The arms are real, and differ by a known share of their work. Pairs of arms are compared in fresh
processes, while other processes keep cores busy. Each comparison takes some seconds; 2 s is the
default of `lab.race`. Groups of processes are judged as the repeats of a run are, each claim alone.
Each claim is that the second arm takes at least as long as the first, which is true for all pairs.

torch.utils.benchmark measures the same pairs in every process. Two arms are different for it if
their quartiles do not overlap.
"""

import contextlib
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.pairs import Row
from benchmarks.processes import PYTHON, find_program, run_command
from tuilab.judging.evidence import gather_evidence
from tuilab.judging.ratio import judge_ratio
from tuilab.record.events import ClaimDeclared
from tuilab.record.live_run import read_run
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import DECISIONS, Verdict

FULL = {"processes": 36, "busy": 0, "seconds": 2.0, "pairs": 13, "group": 6}
TINY = {"processes": 2, "busy": 0, "seconds": 0.02, "pairs": 1, "group": 2}
ENDS_WITH = (0, 1)  # the verdicts of the run itself do not matter
Pair = tuple[str, float]  # the kind of work, and the extra work of the second arm as a share
PAIRS: list[Pair] = [
    ("py", 0.0),
    ("py", 0.02),
    ("py", 0.05),
    ("py", 0.2),
    ("mem", 0.0),
    ("mem", 0.02),
    ("mem", 0.05),
    ("mem", 0.2),
    ("own", 0.0),
    ("own", 0.02),
    ("own", 0.05),
    ("own", 0.2),
    ("alloc", 0.0),
]
MARGIN = 0.03  # a larger difference counts, so that "no difference" is wrong
OVERLAP = "no telling"  # the quartiles of two arms overlap
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
        for arm, factory in arms.items():
            timer = Timer("work()", globals={{"work": factory()}})
            times = timer.blocked_autorange(min_run_time=0.2).times
            if len(times) > 1:  # on a very busy machine there may be one
                low, middle, high = statistics.quantiles(times, n=4)
                lab.log(lab.repeat, arm=arm, low=low, middle=middle, high=high)
'''


def rows(
    place: Path, *, processes: int, busy: int, seconds: float, pairs: int, group: int
) -> Iterator[Row]:
    """Yield the shares of decided and of wrong results, and then the results of each pair."""
    compared_pairs = PAIRS[:pairs]
    with busy_cores(busy):
        summary = run_pairs(place, processes, seconds, compared_pairs)
    verdicts = count_verdicts(summary, compared_pairs, group)
    orders = count_orders(summary, compared_pairs)
    yield from rows_of_shares("tuilab", verdicts, is_decided, is_wrong)
    torch_name = "quartiles of torch.utils.benchmark"
    yield from rows_of_shares(torch_name, orders, is_apart, is_apart_and_wrong)
    for name, counts in verdicts.items():
        for word, count in counts.items():
            yield Row(f"{name}: {word}", f"of {counts.total()} groups of {group}", [count])
    for name, counts in orders.items():
        for word, count in counts.items():
            yield Row(f"{name}: quartiles say {word}", f"of {counts.total()} processes", [count])


@contextlib.contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """Keep so many cores busy."""
    command = [PYTHON, "-c", "while True: sum(range(100_000))"]
    children = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def run_pairs(place: Path, processes: int, seconds: float, pairs: Sequence[Pair]) -> RunSummary:
    """Compare the pairs in fresh processes, and return the record of the run."""
    scenario = place / "pairs.py"
    scenario.write_text(SCENARIO.format(pairs=pairs, seconds=seconds))
    flags = ["--headless", "--quiet", "--repeat", str(processes)]
    command = [find_program("tuilab"), "run", str(scenario), *flags]
    run_command(command, place, ends_with=ENDS_WITH)
    (run_dir,) = (place / "runs").glob("*-pairs-*")
    return read_run(run_dir)


def name_of(pair: Pair) -> str:
    """Return the name of a pair; those of its arms are the same after `a` or `b`."""
    kind, extra = pair
    return f"{kind} {extra}"


def extra_of(name: str) -> float:
    """Return the extra work of the second arm, from the name of a pair."""
    return float(name.split()[1])


def count_verdicts(
    summary: RunSummary, pairs: Sequence[Pair], size: int
) -> dict[str, Counter[str]]:
    """Return how often each verdict was reached, by the name of the pair."""
    verdicts: dict[str, Counter[str]] = {}
    for pair in pairs:
        name = name_of(pair)
        claim = ClaimDeclared(
            text=name, over=f"b {name}", under=f"a {name}", op="at_least", bound=1.0
        )
        counts: Counter[str] = Counter()
        for workers in group_workers(summary, size):
            evidence = gather_evidence(claim, summary, workers)
            if evidence:
                counts[judge_ratio(claim, evidence).verdict] += 1
        verdicts[name] = counts
    return verdicts


def group_workers(summary: RunSummary, size: int) -> list[list[str]]:
    """Return the workers in groups of one size; a last, smaller group is left out."""
    workers = []
    for name, worker in summary.workers.items():
        if worker.started and not worker.started.arm:
            workers.append(name)
    workers.sort()
    last_start = len(workers) - size
    return [workers[start : start + size] for start in range(0, last_start + 1, size)]


def count_orders(summary: RunSummary, pairs: Sequence[Pair]) -> dict[str, Counter[str]]:
    """Return in how many processes the second arm is faster or slower, by the name of the pair.

    A pair without any quartiles is left out.
    """
    orders: dict[str, Counter[str]] = {}
    for pair in pairs:
        name = name_of(pair)
        for worker in summary.workers:
            low_a = summary.series.get(("low", f"a {name}", worker))
            high_a = summary.series.get(("high", f"a {name}", worker))
            low_b = summary.series.get(("low", f"b {name}", worker))
            high_b = summary.series.get(("high", f"b {name}", worker))
            if not (low_a and high_a and low_b and high_b):
                continue
            word = OVERLAP
            if high_b.last < low_a.last:
                word = "faster"
            elif low_b.last > high_a.last:
                word = "slower"
            counts = orders.setdefault(name, Counter())
            counts[word] += 1
    return orders


def rows_of_shares(
    subject: str,
    results: dict[str, Counter[str]],
    decides: Callable[[str], bool],
    errs: Callable[[str, str], bool],
) -> Iterator[Row]:
    """Yield the share of all results that decide, and the share of all results that are wrong."""
    total = 0
    decided = 0
    wrong = 0
    for name, counts in results.items():
        for word, count in counts.items():
            total += count
            if decides(word):
                decided += count
            if errs(name, word):
                wrong += count
    yield Row(f"{subject}, decided", f"% of {total}", [100 * decided / total])
    yield Row(f"{subject}, wrong", f"% of {total}", [100 * wrong / total])


def is_decided(word: str) -> bool:
    return word in DECISIONS


def is_wrong(name: str, word: str) -> bool:
    """Return whether a verdict is wrong: REFUTED always is, "no difference" beyond the margin."""
    if word == Verdict.REFUTED:
        return True
    return word == Verdict.NO_DIFFERENCE and extra_of(name) > MARGIN


def is_apart(word: str) -> bool:
    return word != OVERLAP


def is_apart_and_wrong(name: str, word: str) -> bool:
    """Return whether quartiles are wrong.

    For equal arms they must overlap. For others, the arm with more work must not be the faster one.
    """
    if extra_of(name) == 0:
        return is_apart(word)
    return word == "faster"
