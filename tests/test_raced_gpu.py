"""Which GPU a run races on, found in what its workers write while they write it."""

from pathlib import Path
from typing import Any

import pytest

from tuilab.engine.gpus.raced import Raced, RacedGpu
from tuilab.record import events
from tuilab.record.journal.writer import Writer


class Run:
    """A run whose workers write, and what follows them."""

    def __init__(self, run_dir: Path) -> None:
        self.folder = run_dir / "journal"
        self.folder.mkdir()
        self.raced = RacedGpu(run_dir)
        self.writers: dict[str, Writer] = {}

    def write(self, worker: str, *records: events.Event) -> Raced:
        """Let a worker write, and return what is known then."""
        if worker not in self.writers:
            self.writers[worker] = Writer(self.folder / f"{worker}.jsonl")
        for record in records:
            self.writers[worker].append(record)
        return self.raced.read()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def cuda(*uuids: str) -> events.EnvironmentRecorded:
    return events.EnvironmentRecorded(
        part="cuda", facts={"devices": [{"uuid": uuid} for uuid in uuids]}
    )


def race(device: str = "cuda", **more: Any) -> events.RaceStarted:
    return events.RaceStarted(arms=["a"], threads=1, device=device, loops={"a": 1}, **more)


FINISHED = events.RaceFinished(arms=["a"])


def test_a_race_tells_its_gpu_and_when_it_is_over(run: Run) -> None:
    assert run.raced.read() == Raced()
    assert run.write("worker-0", cuda("u0", "u1")) == Raced()
    assert run.write("worker-0", race(uuid="u1")) == Raced("u1", is_going_on=True)
    assert run.write("worker-0", FINISHED) == Raced("u1", is_going_on=False)


def test_a_race_that_does_not_name_its_gpu_runs_on_the_first_that_torch_sees(run: Run) -> None:
    assert run.write("worker-0", cuda("u0", "u1"), race()) == Raced("u0", is_going_on=True)


def test_the_gpu_that_a_run_was_given_is_watched_before_anybody_races_there(run: Run) -> None:
    facts = {"devices": [{"uuid": "u0"}, {"uuid": "u1"}], "chosen": "u1"}

    given = events.EnvironmentRecorded(part="cuda", facts=facts)
    assert run.write("worker-0", given) == Raced("u1", is_going_on=False)


def test_a_race_on_the_cpu_tells_nothing(run: Run) -> None:
    assert run.write("worker-0", cuda("u0"), race("cpu")) == Raced()


def test_the_worker_that_began_last_counts_and_one_that_died_races_no_more(run: Run) -> None:
    run.write("worker-9", race(uuid="u0"))

    assert run.write("worker-10", cuda("u1")) == Raced("u0", is_going_on=False)
    assert run.write("worker-10", race(uuid="u1")) == Raced("u1", is_going_on=True)


def test_arms_in_processes_of_their_own_tell_which_gpu_they_use(run: Run) -> None:
    run.write("worker-0", race("process"))

    assert run.write("worker-1", cuda("u1")) == Raced("u1", is_going_on=False)


def test_what_a_scenario_logs_or_shows_is_no_race(run: Run) -> None:
    shown = events.TextShown(text='"k":"race_started","device":"cuda","uuid":"evil"')

    assert (
        run.write("worker-0", shown, events.Logged(s=0, v={'"k":"race_started"': 1.0})) == Raced()
    )


def test_half_a_line_is_waited_for_and_a_damaged_one_passed_over(run: Run) -> None:
    run.write("worker-1", race(uuid="u1"))
    whole = (run.folder / "worker-1.jsonl").read_bytes()
    path = run.folder / "worker-2.jsonl"

    path.write_bytes(b'00000000 {"k":"race_started",\n' + whole[:-9])
    assert run.raced.read() == Raced("u1", is_going_on=False)
    path.write_bytes(b'00000000 {"k":"race_started",\n' + whole)
    assert run.raced.read() == Raced("u1", is_going_on=True)


def test_a_journal_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal/worker-0.jsonl").mkdir()

    assert RacedGpu(tmp_path).read() == RacedGpu(tmp_path / "absent").read() == Raced()


def test_megabytes_of_what_is_logged_are_gone_through_in_turns(run: Run) -> None:
    line = b'00000000 {"k":"logged","s":0,"v":{"loss":1.0},"n":0,"t":1}\n'
    run.write("worker-1", race(uuid="u1"))
    whole = (run.folder / "worker-1.jsonl").read_bytes()
    (run.folder / "worker-2.jsonl").write_bytes(line * (6 * 1024 * 1024 // len(line)) + whole)

    assert [run.raced.read().is_going_on for _ in range(2)] == [False, True]
