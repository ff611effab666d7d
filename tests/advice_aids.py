"""Runs in which values of a variable raced, made up: for tests of what follows from them."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.made_runs import identity, make_run, started
from tuilab.probes.same_box import box_facts
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.reports.reported_run import ReportedRun, read_subject

HERE = box_facts()
HOST = identity(is_alive=False).host
THREADS = {"1": 4.0, "2": 2.0, "4": 1.0, "8": 1.5}  # how long each number takes


def said(
    values: Mapping[str, float], *, is_counted: bool = False, **more: Any
) -> events.SettingRaced:
    """Return what a scenario says before the race, or after it counted; the last value is the default."""
    candidates = [
        events.Candidate(value, cost=cost)
        if is_counted
        else events.Candidate(value, arm=f"arm {value}")
        for value, cost in values.items()
    ]
    usual: dict[str, Any] = {
        "name": "OMP_NUM_THREADS",
        "default": [*values][-1],
        "about": "large products",
    }
    return events.SettingRaced(candidates=candidates, **{**usual, **more})


def raced(
    root: Path,
    values: Mapping[str, float] = THREADS,
    *,
    box: Mapping[str, str] = HERE,
    repeats: int = 6,
    noise: float = 0.003,
    state: str = "succeeded",
    variables: Mapping[str, str] | None = None,
    run: Mapping[str, Any] | None = None,
    scenario: str = "omp-threads",
    end: str = "abcdef",
    before: tuple[events.Event, ...] = (),
    **more: Any,
) -> ReportedRun:
    """Return a run whose repeats raced values; `run` are fields of its start, `more` those of what the scenario said."""
    fields = {
        "scenario": scenario,
        "topic": "cpu",
        "repeats": repeats,
        "wall_ns": 10**18,
        **(run or {}),
    }
    names = [f"worker-{number}" for number in range(repeats)]
    begun = [
        events.WorkerStarted(writer=name, pid=1, start=1, repeat=number)
        for number, name in enumerate(names)
    ]
    ended = [events.WorkerExited(writer=name, code=0) for name in names]
    folder = make_run(
        root,
        started(**fields),
        *begun,
        *ended,
        events.StateChanged(state=state),
        name=scenario,
        end=end,
    )
    facts = {
        "cpu": {"usable_cores": int(box["cores"]), "model": box["CPU"]},
        "env": {"variables": variables or {}},
    }
    _write(folder, "sampler", events.EnvironmentRecorded(part="box", facts=facts))
    for number, name in enumerate(names):
        torch = events.EnvironmentRecorded(part="torch", facts={"version": box["torch"]})
        _write(folder, name, torch, *before, said(values, **more), *_race(values, number, noise))
    return read_subject(folder)


def _race(values: Mapping[str, float], repeat: int, noise: float) -> list[events.Event]:
    generator = random.Random(repeat)
    arms = {f"arm {value}": length for value, length in values.items()}
    base = next(iter(arms))
    slots = [(arm, "", length) for arm, length in arms.items()]
    slots += [(base, "same", arms[base]), (base, "delayed", 1.05 * arms[base])]
    found: list[events.Event] = [
        events.RaceStarted(arms=[*arms], threads=1, device="cpu", loops={}, base=base, delay=0.05)
    ]
    for number in range(8):
        for slot, (arm, control, length) in enumerate(slots):
            wall_ns = int(1e7 * length * generator.gauss(1, noise))
            block = events.BlockTimed(
                arm=arm, round=number, slot=slot, loops=1, wall_ns=wall_ns, cpu_ns=wall_ns
            )
            block.control = control  # type: ignore[assignment]
            found.append(block)
    return [*found, events.RaceFinished(arms=[*arms], is_same=True)]


def _write(folder: Path, stream: str, *records: events.Event) -> None:
    journal = Writer(folder / "journal" / f"{stream}.jsonl")
    for record in records:
        journal.append(record)
    journal.close()
