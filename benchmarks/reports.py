"""What it takes to write a run with many numbers in each format for programs, beside reading it and beside the usual writers.

    python benchmarks/reports.py [NUMBERS]

All in turns, each in a process of its own, the best of three; the factors are of processor time. The bars that ours should
keep: .json of a million numbers within 3 times the reading and 150 MiB, .tfevents of 200,000 within a fifth of TensorBoard's.
"""

import csv
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.tui.made_up import make_run, started
from tuilab.record.encoding import encode_finite
from tuilab.record.events import Logged, StateChanged
from tuilab.record.journal.writer import Writer
from tuilab.reports import files
from tuilab.reports.samples import pieces
from tuilab.reports.subject import read_subject

Step = Callable[[Path, Path], None]


def main() -> None:
    numbers = int(sys.argv[1]) if sys.argv[1:] else 200_000
    steps: dict[str, Step] = {"read": read, ".json": as_json, ".csv": as_csv, ".tfevents": as_events,
                              "json.dump": usual_json, "csv.writer": usual_csv}  # fmt: skip
    if find_spec("tensorboard"):
        steps["TensorBoard's writer"] = usual_events
    best: dict[str, tuple[float, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        run_dir = make_run(Path(folder), started(), StateChanged(state="succeeded"))
        log(run_dir / "journal" / "worker-0.jsonl", numbers)
        for turn in range(3):
            for name, step in steps.items():
                best[name] = min(best.get(name, (math.inf, 0)), cost(step, run_dir, Path(folder) / f"{name}-{turn}"))
    print(f"{numbers} numbers")
    for name, (cpu_s, peak_bytes) in best.items():
        print(
            f"{name:22} {cpu_s:6.2f} s {cpu_s / best['read'][0]:6.2f} times the reading  {peak_bytes / 2**20:6.0f} MiB at most"
        )


def log(stream: Path, numbers: int) -> None:
    writer = Writer(stream)
    for step in range(numbers):
        writer.append(Logged(s=step, v={"loss": math.exp(-step / numbers) + math.sin(step) / 10}), encode_finite)
    writer.close()


def cost(step: Step, run_dir: Path, target: Path) -> tuple[float, int]:
    """Return the processor time of a step in a process of its own, and the most memory that it had."""
    pid = os.fork()
    if not pid:
        step(run_dir, target)
        os._exit(0)
    _, status, used = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{step.__name__} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def read(run_dir: Path, target: Path) -> None:
    read_subject(run_dir)


def as_json(run_dir: Path, target: Path) -> None:
    files.write([read_subject(run_dir)], str(target), "json")


def as_csv(run_dir: Path, target: Path) -> None:
    files.write([read_subject(run_dir)], str(target), "csv")


def as_events(run_dir: Path, target: Path) -> None:
    files.write([read_subject(run_dir)], str(target), "tensorboard")


def points(run_dir: Path) -> Iterator[tuple[str, float, int, float]]:
    for piece in pieces(run_dir):
        for row in zip(piece.places, piece.times, piece.values, strict=True):
            yield (piece.name, *row)


def usual_json(run_dir: Path, target: Path) -> None:
    rows = [{"name": name, "place": place, "t": t, "value": value} for name, place, t, value in points(run_dir)]
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


if __name__ == "__main__":
    main()
