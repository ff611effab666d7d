"""The times of arms as pyperf keeps benchmarks, for its tools: a benchmark for each arm, a run for each repeat."""

import time
from collections.abc import Sequence
from typing import Any

from tuilab import __version__
from tuilab.errors import UsageError
from tuilab.record.blocks import counted, in_order
from tuilab.record.parts import Block
from tuilab.reports.subject import Subject
from tuilab.text import show


def pyperf(subjects: Sequence[Subject]) -> dict[str, Any]:
    """Return a benchmark suite in pyperf's JSON, version 1.0; warm-ups are told as such."""
    benchmarks = [benchmark for subject in subjects for benchmark in _benchmarks(subject)]
    if not benchmarks:
        raise UsageError("pyperf keeps times, and no arms raced in this run; choose .json or .csv")
    return {"version": "1.0", "benchmarks": benchmarks, "metadata": {"description": f"written by tuilab {__version__}"}}


def _benchmarks(subject: Subject) -> list[dict[str, Any]]:
    arms: dict[str, list[list[Block]]] = {}
    for (_, arm), blocks in in_order(subject.summary).items():
        arms.setdefault(arm, []).append(blocks)
    found = []
    for arm, repeats in arms.items():
        runs = [_run(blocks, subject) for blocks in repeats]
        named = {"name": f"{subject.name} {show(arm, 60)}", "unit": "second"}
        found.append({"metadata": named, "runs": [run for run in runs if run["values"]]})
    return [benchmark for benchmark in found if benchmark["runs"]]


def _run(blocks: Sequence[Block], subject: Subject) -> dict[str, Any]:
    run = subject.summary.run
    good = [block.step_s for block in counted(blocks)]
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(run.wall_ns / 1e9)) if run and run.wall_ns < 2**62 else ""
    told = {"date": began} if began else {}
    warmups = [[1, block.step_s] for block in blocks if block.is_warmup]
    return {"values": good, "metadata": told, **({"warmups": warmups} if warmups else {})}
