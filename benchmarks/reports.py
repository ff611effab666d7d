"""Write a run of many numbers in each format for programs, next to other writers of them."""

import csv
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.alone import call_alone
from benchmarks.pairs import Measurement, Missing, Row, in_rounds
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
GOALS = {
    (".json", "processor s"): "3 times",
    (".json", "MiB at most"): "150 of a million",
    (".tfevents", "processor s"): "a fifth of TensorBoard's",
}
ReportWriter = Callable[[Path, Path], None]  # from the folder of a run to a file


def rows(place: Path, *, rounds: int, numbers: int) -> Iterator[Row]:
    """Yield the cost of reading a run, of our formats, and of other writers."""
    run_dir = make_run(place / "runs", started(), StateChanged(state="succeeded"))
    log_numbers(run_dir / "journal" / "worker-0.jsonl", numbers)
    writers: dict[str, ReportWriter] = {
        "reading": read,
        ".json": write_json,
        ".csv": write_csv,
        ".tfevents": write_events,
        "json.dump": write_usual_json,
        "csv.writer": write_usual_csv,
        "TensorBoard's writer": write_usual_events,
    }
    measurements: dict[str, Measurement] = {}
    for name, writer in writers.items():
        measurements[name] = partial(measure_writer, writer, run_dir, place)
    yield from in_rounds(measurements, rounds, GOALS, beside="reading", is_warmed=False)


def measure_writer(write: ReportWriter, run_dir: Path, place: Path) -> dict[str, float]:
    """Return the cost of a writer, which gets a file of its own."""
    if write is write_usual_events and find_spec("tensorboard") is None:
        raise Missing(f"no tensorboard; {INSTALL}")
    number = len(list(place.iterdir()))
    target = place / f"{write.__name__}-{number}"
    return call_alone(write, place, run_dir, target)


def log_numbers(stream: Path, numbers: int) -> None:
    """Write a curve of so many numbers to the journal of a run."""
    writer = Writer(stream)
    for step in range(numbers):
        loss = math.exp(-step / numbers) + math.sin(step) / 10
        writer.append(Logged(s=step, v={"loss": loss}), encode_finite)
    writer.close()


def read(run_dir: Path, target: Path) -> None:
    """Only read the run, as each of our formats does first."""
    read_subject(run_dir)


def write_json(run_dir: Path, target: Path) -> None:
    write_report.write([read_subject(run_dir)], str(target), "json")


def write_csv(run_dir: Path, target: Path) -> None:
    write_report.write([read_subject(run_dir)], str(target), "csv")


def write_events(run_dir: Path, target: Path) -> None:
    write_report.write([read_subject(run_dir)], str(target), "tensorboard")


def points(run_dir: Path) -> Iterator[tuple[str, float, int, float]]:
    """Yield the points of a run for the other writers: name, place, nanoseconds, value."""
    for piece in read_samples(run_dir):
        for row in zip(piece.places, piece.times, piece.values, strict=True):
            yield (piece.name, *row)


def write_usual_json(run_dir: Path, target: Path) -> None:
    rows = []
    for name, place, t_ns, value in points(run_dir):
        rows.append({"name": name, "place": place, "t": t_ns, "value": value})
    target.write_text(json.dumps(rows, indent=1))


def write_usual_csv(run_dir: Path, target: Path) -> None:
    with target.open("w", newline="") as file:
        csv.writer(file).writerows(points(run_dir))


def write_usual_events(run_dir: Path, target: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(target))
    for name, place, t_ns, value in points(run_dir):
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
        writer.add_event(Event(wall_time=t_ns / 1e9, step=int(place), summary=summary))
    writer.close()
