"""Record a simulated day of short steps as `tuilab exec` does, and open it: bytes, time, memory.

Nobody waits for the day. A simulated trainer puts the marks of its steps into the files that the
watcher of `tuilab exec` uses, and a simulated clock says that their time has passed. The recorder
of `tuilab exec` reads these marks: of the first steps, which have a record each, and of some
minutes of later steps, which share records of two seconds. The rest of the day repeats the records
of these minutes, with later steps and times.
"""

import math
import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from msgspec.structs import replace

from benchmarks.alone import call_alone
from benchmarks.opening import read_with_tuilab
from benchmarks.pairs import Measurement, Row, in_rounds
from tests.engine import read_stream
from tests.made_runs import make_run, started
from tuilab.commands import watched
from tuilab.commands.output.scan_numbers import NumberScanner
from tuilab.commands.step_blocks import STEPS_ALONE
from tuilab.commands.watched import Watched
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.commands.watcher._tuilab_watch.ring import Ring
from tuilab.engine.messages import CommandOrder
from tuilab.record.events import BarsShown, BlockLogged, Progressed, StateChanged
from tuilab.record.journal.writer import Writer

# `alone` steps have a record each. `driven_minutes` of later steps go through the recorder.
FULL = {"rounds": 3, "hours": 24.0, "driven_minutes": 5.0, "alone": STEPS_ALONE}
TINY = {"rounds": 1, "hours": 0.05, "driven_minutes": 0.5, "alone": 500}
STEP_LENGTHS_MS = (2, 6)
GOAL_S = "3"  # to open a day of steps
MS = 1_000_000  # nanoseconds
SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
TURN_MS = 50  # between two readings of the marks, as in `tuilab exec`

# The records of blocks of steps and of the accounts between them.
Repeated = BlockLogged | BarsShown | Progressed


class Trainer:
    """A simulated trainer with a DataLoader, a backward and an optimizer.

    Its steps vary by 5 %, because equal numbers would need fewer digits.
    """

    def __init__(self, marks: Path, step_ms: int) -> None:
        self._ring = Ring(str(marks))
        self._ring.text(layout.NAME, "SGD\noptimizer 1", 1)
        self._step_ns = step_ms * MS
        self._random = random.Random(1)
        self._cpu_ns = 0
        self.now_ns = 0

    def train(self, steps: int) -> None:
        """Put the marks of some steps."""
        for _ in range(steps):
            self._train_step()

    def _train_step(self) -> None:
        length_ns = round(self._step_ns * self._random.uniform(0.95, 1.05))
        began_ns = self.now_ns
        waited_ns = began_ns + length_ns // 10
        forward_ns = began_ns + length_ns // 3
        backward_ns = began_ns + length_ns * 4 // 5
        ended_ns = began_ns + length_ns
        self._cpu_ns += length_ns * 9 // 10
        loss = self._random.random()
        put = self._ring.mark
        put(layout.WAITED, began_ns, waited_ns, name=1)
        put(layout.WENT_BACK, forward_ns, backward_ns, loss, flags=layout.HAS_VALUE)
        put(layout.USED, self._cpu_ns, self._cpu_ns, 0.0, name=1)
        put(layout.STEPPED, backward_ns, ended_ns, name=1)
        self.now_ns = ended_ns


class Day:
    """A run of a simulated trainer, and the recorder of `tuilab exec` that records it."""

    def __init__(self, runs: Path, name: str, step_ms: int) -> None:
        self.name = name
        self.run_dir = make_run(runs, started(command=["python", "train.py"]), name=name)
        self.stream = self.run_dir / "journal" / "worker-0.jsonl"
        self.steps = 0
        self.step_ms = step_ms
        marks = self.run_dir / "marks-worker-0"
        marks.mkdir()
        self._trainer = Trainer(marks, step_ms)
        self._journal = Writer(self.stream)
        command = CommandOrder(words=["python"])
        self._recorder = Watched(command, marks, NumberScanner([]), self._journal)

    @property
    def bytes_recorded(self) -> int:
        return self.stream.stat().st_size

    def drive(self, steps: int, alone: int) -> float:
        """Train some steps and record them; return the processor seconds of both.

        The first `alone` steps of the run have a record each.
        """
        clock = SimpleNamespace(monotonic=lambda: self._trainer.now_ns / 1e9)
        began_s = time.process_time()
        with patch.object(watched, "time", clock), patch.object(watched, "STEPS_ALONE", alone):
            for first in range(0, steps, TURN_MS // self.step_ms):
                self._trainer.train(min(TURN_MS // self.step_ms, steps - first))
                self._recorder.turn()
        self.steps += steps
        return time.process_time() - began_s

    def repeat(self, records: list[Repeated], driven_steps: int, times: int) -> None:
        """Append the records of the last steps again and again, with later steps and times."""
        for number in range(1, times + 1):
            steps = number * driven_steps
            for record in records:
                self._journal.append(self._later(record, steps))
        self.steps += times * driven_steps

    def _later(self, record: Repeated, steps: int) -> Repeated:
        """Return a record as it would be so many steps later."""
        if isinstance(record, BlockLogged):
            later_ns = record.at + steps * self.step_ms * MS
            return replace(record, s=record.s + steps, at=later_ns)
        if isinstance(record, Progressed):
            return replace(record, done=record.done + steps)
        return record

    def finish(self) -> None:
        """Record the end of the run, as if its command had succeeded."""
        self._recorder.finish()
        self._journal.close()
        supervisor = Writer(self.run_dir / "journal" / "supervisor.jsonl", goes_on=True)
        supervisor.append(StateChanged(state="succeeded"))
        supervisor.close()


def rows(
    place: Path, *, rounds: int, hours: float, driven_minutes: float, alone: int
) -> Iterator[Row]:
    """Yield the size of a run for each length of a step, and then what opening the runs takes."""
    short = Day(place / "runs", "short", STEP_LENGTHS_MS[0])
    short.drive(alone, alone)
    short.finish()
    name = f"{alone:,} steps"
    yield Row(name, "bytes of the worker's stream", [short.bytes_recorded])
    reference = f"open {name}"
    measurements: dict[str, Measurement] = {
        reference: partial(call_alone, read_with_tuilab, place, short.stream)
    }
    goals = {}
    for step_ms in STEP_LENGTHS_MS:
        day = Day(place / "runs", f"{hours:g} h of {step_ms} ms steps", step_ms)
        all_steps = round(hours * HOUR_MS / step_ms)
        driven_steps = round(driven_minutes * MINUTE_MS / step_ms)
        yield from record(day, all_steps, driven_steps, alone)
        subject = f"open {day.name}"
        measurements[subject] = partial(call_alone, read_with_tuilab, place, day.stream)
        goals[subject, "processor s"] = GOAL_S
    yield from in_rounds(measurements, rounds, goals, beside=reference)


def record(day: Day, all_steps: int, driven_steps: int, alone: int) -> Iterator[Row]:
    """Record a day of at least so many steps; yield its size, and what recording a step takes."""
    alone_s = day.drive(alone, alone)
    # The recorder lags behind the trainer, so the next steps still have a record each.
    day.drive(SECOND_MS // day.step_ms, alone)
    count_before = len(read_stream(day.stream))
    driven_s = day.drive(driven_steps, alone)
    records = []
    for item in read_stream(day.stream)[count_before:]:
        if isinstance(item, Repeated):
            records.append(item)
    remaining_steps = max(0, all_steps - day.steps)
    day.repeat(records, driven_steps, math.ceil(remaining_steps / driven_steps))
    day.finish()
    yield Row(day.name, "steps", [day.steps])
    yield Row(day.name, "bytes of the worker's stream", [day.bytes_recorded])
    yield Row(day.name, "us to record a step alone", [1e6 * alone_s / alone])
    yield Row(day.name, "us to record a step in a block", [1e6 * driven_s / driven_steps])
