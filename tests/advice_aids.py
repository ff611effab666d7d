"""Make runs that compared values of a variable, for tests of the advice that follows from them."""

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
THREADS = {"1": 4.0, "2": 2.0, "4": 1.0, "8": 1.5}  # for each number, how long a call takes
ROUNDS = 8


def setting_raced(
    values: Mapping[str, float], *, is_counted: bool = False, **more: Any
) -> events.SettingRaced:
    """Return the record of a scenario that compares values; the last value is the default.

    The values have costs if the scenario has counted something, and arms if it times them.
    """
    if is_counted:
        candidates = [events.Candidate(value, cost=cost) for value, cost in values.items()]
    else:
        candidates = [events.Candidate(value, arm=f"arm {value}") for value in values]
    fields: dict[str, Any] = {
        "name": "OMP_NUM_THREADS",
        "default": [*values][-1],
        "about": "large products",
    }
    return events.SettingRaced(candidates=candidates, **{**fields, **more})


def make_raced_run(
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
    """Make a run whose repeats compare values, and read it.

    `run` are fields of its start, `more` those of `SettingRaced`.
    """
    fields: dict[str, Any] = {
        "scenario": scenario,
        "topic": "cpu",
        "repeats": repeats,
        "wall_ns": 10**18,
    }
    fields |= run or {}
    workers = [f"worker-{repeat}" for repeat in range(repeats)]
    records: list[events.Event] = [started(**fields)]
    for repeat, worker in enumerate(workers):
        records.append(events.WorkerStarted(writer=worker, pid=1, start=1, repeat=repeat))
    for worker in workers:
        records.append(events.WorkerExited(writer=worker, code=0))
    records.append(events.StateChanged(state=state))
    folder = make_run(root, *records, name=scenario, end=end)

    cpu = {"usable_cores": int(box["cores"]), "model": box["CPU"]}
    facts = {"cpu": cpu, "env": {"variables": variables or {}}}
    _write(folder, "sampler", events.EnvironmentRecorded(part="box", facts=facts))
    for repeat, worker in enumerate(workers):
        torch = events.EnvironmentRecorded(part="torch", facts={"version": box["torch"]})
        setting = setting_raced(values, **more)
        _write(folder, worker, torch, *before, setting, *_race(values, repeat, noise))
    return read_subject(folder)


def _race(values: Mapping[str, float], repeat: int, noise: float) -> list[events.Event]:
    """Return the records of a race of the values in one repeat."""
    generator = random.Random(repeat)
    length_of_arm = {f"arm {value}": length for value, length in values.items()}
    arms = [*length_of_arm]
    base = arms[0]
    slots = [(arm, "", length) for arm, length in length_of_arm.items()]
    slots.append((base, "same", length_of_arm[base]))
    slots.append((base, "delayed", 1.05 * length_of_arm[base]))
    records: list[events.Event] = [
        events.RaceStarted(arms=arms, threads=1, device="cpu", loops={}, base=base, delay=0.05)
    ]
    for number in range(ROUNDS):
        for slot, (arm, control, length) in enumerate(slots):
            wall_ns = int(1e7 * length * generator.gauss(1, noise))
            block = events.BlockTimed(
                arm=arm, round=number, slot=slot, loops=1, wall_ns=wall_ns, cpu_ns=wall_ns
            )
            block.control = control  # type: ignore[assignment]
            records.append(block)
    records.append(events.RaceFinished(arms=arms, is_same=True))
    return records


def _write(folder: Path, stream: str, *records: events.Event) -> None:
    """Write a stream of the journal of a run."""
    journal = Writer(folder / "journal" / f"{stream}.jsonl")
    for record in records:
        journal.append(record)
    journal.close()
