"""How often the lab is wrong here, and how often it decides: real arms that differ by a known share of their work.

    python benchmarks/verdict_rates.py [PROCESSES [BUSY [SECONDS]]]

Thirteen pairs of arms race in so many processes (36), beside so many that keep the cores busy (0), each pair for so long
(2 s, as long as a race takes that does not say). Groups of six processes are judged as a run of six repeats is, each claim
alone: that the second arm takes at least as long as the first, which is true of all. torch.utils.benchmark measures the same
pairs in every process; they are different where its quartiles lie apart.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tuilab.judging.evidence import gather
from tuilab.judging.ratio import judge_ratio
from tuilab.record.events import ClaimDeclared
from tuilab.record.live_run import read_run
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import DECISIONS, Verdict

GROUP = 6
PAIRS = [
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


def main() -> None:
    words = [float(word) for word in sys.argv[1:]]
    processes, busy, seconds = [*words, *[36, 0, 2.0][len(words) :]]
    with tempfile.TemporaryDirectory() as folder, busy_cores(int(busy)):
        summary = measured(Path(folder), int(processes), seconds)
        load = os.getloadavg()[0]
        print(f"load at the end {load:.1f}, {processes:g} processes, {len(PAIRS)} pairs of arms, {seconds:g} s each")
    ours = verdicts(summary)
    for name, found in [("tuilab", ours), ("quartiles of torch.utils.benchmark", quartiles(summary))]:
        print(name)
        for kind, counts in found.items():
            print(f"  {kind:12} " + ", ".join(f"{count} {word}" for word, count in counts.most_common()))
    print(in_short(ours))


@contextlib.contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """Keep as many cores busy meanwhile."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(100_000))"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measured(folder: Path, processes: int, seconds: float) -> RunSummary:
    """Run the pairs in fresh processes and return the record."""
    scenario = folder / "pairs.py"
    scenario.write_text(SCENARIO.format(pairs=PAIRS, seconds=seconds))
    tuilab = [str(Path(sys.executable).with_name("tuilab")), "run", str(scenario), "--headless", "--quiet"]
    subprocess.run([*tuilab, "--repeat", str(processes), "--root", str(folder / "runs")], check=True, stdout=subprocess.DEVNULL)
    (run_dir,) = (folder / "runs").glob("*-pairs-*")
    return read_run(run_dir)


def verdicts(summary: RunSummary) -> dict[str, Counter[str]]:
    """Return how often each verdict was reached, by pair."""
    found: dict[str, Counter[str]] = {}
    for kind, extra in PAIRS:
        name = f"{kind} {extra}"
        claim = ClaimDeclared(text=name, over=f"b {name}", under=f"a {name}", op="at_least", bound=1.0)
        counts = found.setdefault(name, Counter())
        for group in groups(summary):
            if evidence := gather(claim, summary, group):
                counts[judge_ratio(claim, evidence).verdict] += 1
    return found


def groups(summary: RunSummary) -> list[list[str]]:
    workers = sorted(name for name, worker in summary.workers.items() if worker.started and not worker.started.arm)
    return [workers[start : start + GROUP] for start in range(0, len(workers) - GROUP + 1, GROUP)]


def quartiles(summary: RunSummary) -> dict[str, Counter[str]]:
    """Return in how many processes the quartiles of the two arms lie apart, by pair."""
    found: dict[str, Counter[str]] = {}
    for kind, extra in PAIRS:
        name = f"{kind} {extra}"
        for worker in summary.workers:
            ends = [[summary.series.get((end, f"{arm} {name}", worker)) for end in ("low", "high")] for arm in "ab"]
            (low_a, high_a), (low_b, high_b) = ends
            if low_a and high_a and low_b and high_b:
                word = "faster" if high_b.last < low_a.last else "slower" if low_b.last > high_a.last else "no telling"
                found.setdefault(name, Counter())[word] += 1
    return found


def in_short(found: dict[str, Counter[str]]) -> str:
    """Return how many groups were decided, and how many of them wrong: REFUTED always, "no difference" beyond the margin."""
    total = sum(counts.total() for counts in found.values())
    decided = sum(count for counts in found.values() for word, count in counts.items() if word in DECISIONS)
    wrong = sum(
        count
        for name, counts in found.items()
        for word, count in counts.items()
        if word == Verdict.REFUTED or (word == Verdict.NO_DIFFERENCE and float(name.split()[1]) > 0.03)
    )
    return f"decided {decided} of {total} ({100 * decided / total:.0f} %), wrong {wrong} ({100 * wrong / total:.1f} %)"


if __name__ == "__main__":
    main()
