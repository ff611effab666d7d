"""Open runs of many points and of many arms, next to plain parsers and to small runs."""

import json
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec

from benchmarks.alone import call_alone
from benchmarks.pairs import Measurement, Row, in_rounds
from benchmarks.terminals import open_tuilab, processor_s, wait_until_rest, wait_until_shown
from tests.made_runs import make_run, started
from tuilab.record.encoding import encode_finite
from tuilab.record.events import Logged, Record, StateChanged
from tuilab.record.journal.writer import Writer
from tuilab.record.live_run import Watch

FULL = {"rounds": 3, "opened": 5, "points": 1_000_000, "arms": 1000, "points_of_arm": 100}
TINY = {"rounds": 1, "opened": 1, "points": 50_000, "arms": 10, "points_of_arm": 5}
decode = msgspec.json.Decoder(Record, strict=False).decode


def rows(
    place: Path, *, rounds: int, opened: int, points: int, arms: int, points_of_arm: int
) -> Iterator[Row]:
    """Yield the times of reading a run, and then those of the screens."""
    runs = place / "runs"
    no_points = make_finished_run(runs, "empty", points=0)
    many_points = make_finished_run(runs, "long", points=points)
    one_arm = make_finished_run(runs, "arms1", points_of_arm, arms=1)
    many_arms = make_finished_run(runs, f"arms{arms}", points_of_arm, arms=arms)
    name = f"{points:,} points"

    stream = many_points / "journal" / "worker-0.jsonl"
    readers: dict[str, Callable[[Path], None]] = {
        "json.loads a line": read_with_json,
        "msgspec a line": read_with_msgspec,
        f"read {name}": read_with_tuilab,
    }
    measurements: dict[str, Measurement] = {}
    for title, reader in readers.items():
        measurements[title] = partial(call_alone, reader, place, stream)
    yield from in_rounds(measurements, rounds, beside="json.loads a line")

    measurements = {f"read {name}, in portions": partial(time_portions, many_points)}
    yield from in_rounds(measurements, rounds)

    measurements = {
        f"the screens, {name}, first time": partial(time_screens, place, many_points),
    }
    yield from in_rounds(measurements, 1)

    reference = "the screens, no points"
    again = f"the screens, {name}, again"
    measurements = {
        reference: partial(time_screens, place, no_points),
        again: partial(time_screens, place, many_points),
    }
    goals = {(again, "s to all of it"): "0.02 s more"}
    yield from in_rounds(measurements, opened, goals, beside=reference)

    reference = "the screens, 1 arm"
    measurements = {
        reference: partial(time_screens, place, one_arm),
        f"the screens, {arms:,} arms": partial(time_screens, place, many_arms),
    }
    yield from in_rounds(measurements, opened, beside=reference)


def make_finished_run(runs: Path, name: str, points: int, *, arms: int = 0) -> Path:
    """Make a run with so many points, or with so many points of each arm if it has any."""
    run_dir = make_run(runs, started(scenario=name), name=name)
    arm_names = [""]
    if arms:
        arm_names = [f"arm {number}" for number in range(arms)]
    writer = Writer(run_dir / "journal" / "worker-0.jsonl")
    for arm in arm_names:
        for step in range(points):
            loss = math.exp(-step / points) + math.sin(step) / 10
            writer.append(Logged(s=step, v={"loss": loss}, a=arm), encode_finite)
    writer.close()
    supervisor = Writer(run_dir / "journal" / "supervisor.jsonl", goes_on=True)
    # This is the last record of the run: screens that show it have read all the others.
    supervisor.append(StateChanged(state="succeeded"))
    supervisor.close()
    return run_dir


def read_with_json(stream: Path) -> None:
    """Parse each line after its checksum, and keep nothing."""
    with stream.open("rb") as lines:
        for line in lines:
            json.loads(line[9:])


def read_with_msgspec(stream: Path) -> None:
    """Decode each line after its checksum into a record, and keep nothing."""
    with stream.open("rb") as lines:
        for line in lines:
            decode(line[9:])


def read_with_tuilab(stream: Path) -> None:
    """Check every line and the sequence of the lines, and make the curves."""
    watch = Watch(stream.parent.parent)
    while watch.refresh():
        pass
    watch.close()


def time_portions(run_dir: Path) -> dict[str, float]:
    """Return the milliseconds to the first points, and those of the longest portion."""
    watch = Watch(run_dir)
    times_s = [time.perf_counter()]
    while watch.refresh():
        times_s.append(time.perf_counter())
    watch.close()
    longest_s = max(later - earlier for earlier, later in pairwise(times_s))
    return {
        "ms to the first points": 1e3 * (times_s[1] - times_s[0]),
        "ms, the longest": 1e3 * longest_s,
    }


def time_screens(place: Path, run_dir: Path) -> dict[str, float]:
    """Return the time until the screens show a run, and until they have drawn all of it."""
    with open_tuilab(place, "attach", run_dir.name) as term:
        began = time.perf_counter()
        shown_s = wait_until_shown(term, "succeeded")
        drawn_s = wait_until_rest(partial(processor_s, term)) - began
        return {
            "s to its state": shown_s,
            "s to all of it": drawn_s,
            "processor s": processor_s(term),
        }
