"""The times of arms as pyperf keeps benchmarks, for its tools: a benchmark for each arm, a run for each repeat."""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from tuilab import __version__
from tuilab.errors import UsageError
from tuilab.record.blocks import counted, in_order, measure_of
from tuilab.record.parts import Block
from tuilab.record.summary import RunSummary
from tuilab.record.timing.clocks import CPU, arm_times
from tuilab.reports.formats.names import names_of, whole
from tuilab.reports.gaps import damage
from tuilab.reports.subject import Subject
from tuilab.text import show


def pyperf(subjects: Sequence[Subject]) -> dict[str, Any]:
    """Return a benchmark suite in pyperf's JSON, version 1.0; warm-ups are told as such."""
    named = zip(subjects, names_of(subjects), strict=True)
    benchmarks = [benchmark for subject, name in named for benchmark in _benchmarks(subject, name)]
    if not benchmarks:
        raise UsageError("pyperf keeps times, and no arms raced in this run; choose .json or .csv")
    damaged = "".join(f"; {subject.id} IS DAMAGED: {' '.join(damage(subject))}" for subject in subjects if damage(subject))
    return {
        "version": "1.0",
        "benchmarks": benchmarks,
        "metadata": {"description": f"written by tuilab {__version__}{damaged}", "unit": "second"},
    }


def _benchmarks(subject: Subject, name: str) -> list[dict[str, Any]]:
    arms: dict[str, list[list[Block]]] = {}
    clocks = {arm: one.clock for arm, one in arm_times(subject.summary).items()}
    if measure_of(subject.summary).unit != "s":
        return []
    for (_, arm), blocks in in_order(subject.summary).items():
        arms.setdefault(arm, []).append(blocks)
    told = _metadata(subject)
    found: list[dict[str, Any]] = []
    for arm, repeats in arms.items():
        benchmark_name = f"{name} {whole(arm)}"
        if clocks.get(arm) == CPU:  # judged on it; the plain name stays the wall clock, so that pyperf can compare runs
            on_cpu = [run for blocks in repeats for run in _runs(_on_cpu(blocks))]
            found.append({"metadata": {**told, "name": f"{benchmark_name}, CPU time (judged)"}, "runs": on_cpu})
        runs = [run for blocks in repeats for run in _runs(blocks)]
        found.append({"metadata": {**told, "name": benchmark_name}, "runs": runs})
    return [benchmark for benchmark in found if benchmark["runs"]]


def _on_cpu(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks that recorded CPU time, with that as the time of a call."""
    return [replace(block, step_s=block.thread_s) for block in blocks if block.thread_s is not None]


def _runs(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return a repeat: mostly one run of pyperf's, which has one number of calls a block."""
    good = sorted(counted(blocks), key=lambda block: block.loops)
    runs: list[dict[str, Any]] = [
        {"values": [block.step_s for block in some], "metadata": {"loops": loops}}
        for loops, some in groupby(good, key=lambda block: block.loops)
    ]
    if runs and (warmups := [[block.loops, block.step_s] for block in blocks if block.is_warmup]):
        runs[0]["warmups"] = warmups
    return runs


def _metadata(subject: Subject) -> dict[str, Any]:
    """Return where and when it was measured, in the words that pyperf compares; what is not known is left out."""
    summary, run = subject.summary, subject.summary.run
    box = summary.environment.get("box", {})
    known = {
        "date": _date(summary),
        "hostname": _fact(box, "env", "host") or (run.supervisor.host if run else None),
        "cpu_model_name": _fact(box, "cpu", "model"),
        "cpu_count": _fact(box, "cpu", "logical_cores"),
        "python_version": _fact(box, "env", "python"),
        "torch_version": _fact(summary.environment, "torch", "version"),
        "tuilab_run": subject.run_dir.name,
        "tuilab_scenario": subject.name,
        "tuilab_damage": " ".join(damage(subject)),
    }
    return {name: value if isinstance(value, int) else show(value) for name, value in known.items() if value}


def _fact(facts: Any, *names: str) -> Any:
    """Return a fact that was recorded, at a path of names; a record may hold anything."""
    for name in names:
        facts = facts.get(name) if isinstance(facts, dict) else None
    return facts if isinstance(facts, str | int) else None


def _date(summary: RunSummary) -> str:
    run = summary.run
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(run.wall_ns / 1e9)) if run and run.wall_ns < 2**62 else ""
