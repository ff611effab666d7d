"""Writing a run of many numbers in each format for programs, beside reading it and beside the usual writers."""

import csv
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.alone import alone
from benchmarks.pairs import Missing, Row, Way, in_rounds
from benchmarks.processes import INSTALL
from tests.made_runs import make_run, started
from tuilab.record.encoding import encode_finite
from tuilab.record.events import Logged, StateChanged
from tuilab.record.journal.writer import Writer
from tuilab.reports import write_report
from tuilab.reports.reported_run import read_subject
from tuilab.reports.samples import read_samples

FULL = {"rounds": 3, "numbers": 200_000}
TINY = {"rounds": 1, "numbers": 2000}
GOALS = {(".json", "processor s"): "3 times", (".json", "MiB at most"): "150 of a million",
         (".tfevents", "processor s"): "a fifth of TensorBoard's"}  # fmt: skip
Step = Callable[[Path, Path], None]


def rows(place: Path, *, rounds: int, numbers: int) -> Iterator[Row]:
    run_dir = make_run(place / "runs", started(), StateChanged(state="succeeded"))
    log(run_dir / "journal" / "worker-0.jsonl", numbers)
    steps: dict[str, Step] = {
        "reading": read, ".json": as_json, ".csv": as_csv, ".tfevents": as_events, "json.dump": usual_json,
        "csv.writer": usual_csv, "TensorBoard's writer": usual_events,
    }  # fmt: skip
    ways: dict[str, Way] = {
        name: partial(written, step, run_dir, place) for name, step in steps.items()
    }
    yield from in_rounds(ways, rounds, GOALS, beside="reading", is_warmed=False)


def written(step: Step, run_dir: Path, place: Path) -> dict[str, float]:
    """Return what a step takes, to a file of its own."""
    if step is usual_events and find_spec("tensorboard") is None:
        raise Missing(f"no tensorboard; {INSTALL}")
    target = place / f"{step.__name__}-{len(list(place.iterdir()))}"
    return alone(step, place, run_dir, target)


def log(stream: Path, numbers: int) -> None:
    writer = Writer(stream)
    for step in range(numbers):
        writer.append(
            Logged(s=step, v={"loss": math.exp(-step / numbers) + math.sin(step) / 10}),
            encode_finite,
        )
    writer.close()


def read(run_dir: Path, target: Path) -> None:
    read_subject(run_dir)


def as_json(run_dir: Path, target: Path) -> None:
    write_report.write([read_subject(run_dir)], str(target), "json")


def as_csv(run_dir: Path, target: Path) -> None:
    write_report.write([read_subject(run_dir)], str(target), "csv")


def as_events(run_dir: Path, target: Path) -> None:
    write_report.write([read_subject(run_dir)], str(target), "tensorboard")


def points(run_dir: Path) -> Iterator[tuple[str, float, int, float]]:
    for piece in read_samples(run_dir):
        for row in zip(piece.places, piece.times, piece.values, strict=True):
            yield (piece.name, *row)


def usual_json(run_dir: Path, target: Path) -> None:
    rows = [
        {"name": name, "place": place, "t": t, "value": value}
        for name, place, t, value in points(run_dir)
    ]
    target.write_text(json.dumps(rows, indent=1))


def usual_csv(run_dir: Path, target: Path) -> None:
    with target.open("w", newline="") as file:
        csv.writer(file).writerows(points(run_dir))


def usual_events(run_dir: Path, target: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(target))
    for name, place, t, value in points(run_dir):
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
        writer.add_event(Event(wall_time=t / 1e9, step=int(place), summary=summary))
    writer.close()
