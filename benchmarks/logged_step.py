"""Log scalars with one logger in this process, which `scalars.py` starts.

    python -m benchmarks.logged_step LOGGER FOLDER CALLS STEPS

Print, as JSON, what a call takes in a tight loop and in a step, and how many points were logged.
Then the process kills itself.
"""

import csv
import itertools
import json
import os
import random
import signal
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Log = Callable[[int, float], object]
STEP_US = 730
FAST_SHARE = 0.1  # of the steps, and of blocks of calls: so many were not disturbed
CALLS_OF_BLOCK = 20
_POINT = struct.Struct("<qqd")  # a step, a time in nanoseconds, a value


def main() -> None:
    name, folder, calls, steps = sys.argv[1:]
    log = LOGGERS[name]().begin(Path(folder))
    result = measure_in_steps(log, int(steps))
    result["tight_us"] = measure_tight(log, int(result["points"]), int(calls))
    result["points"] += int(calls)
    print("\n" + json.dumps(result), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def measure_in_steps(log: Log, steps: int) -> dict[str, float]:
    """Return the microseconds of a step with and without logging, and the number of points.

    The two kinds of steps take turns, in an order that is drawn. Each logging turn logs two points.
    """
    step = make_step()
    numbers = itertools.count()
    times_us: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(steps):
        for is_logging in random.sample([False, True], 2):
            for _ in range(2):  # only the second counts: the first one finds cold caches
                began = time.perf_counter()
                step()
                if is_logging:
                    log(next(numbers), 0.5)
                last_us = (time.perf_counter() - began) * 1e6
            times_us[is_logging].append(last_us)
    return {
        "bare_us": fast_time(times_us[False]),
        "logged_us": fast_time(times_us[True]),
        "points": next(numbers),
    }


def measure_tight(log: Log, first: int, calls: int) -> float:
    """Return the microseconds of a call in a loop that does nothing else."""
    times_us = []
    for start in range(first, first + calls, CALLS_OF_BLOCK):
        began = time.perf_counter()
        for number in range(start, start + CALLS_OF_BLOCK):
            log(number, number / 2)
        times_us.append((time.perf_counter() - began) / CALLS_OF_BLOCK * 1e6)
    return fast_time(times_us)


def fast_time(times_us: list[float]) -> float:
    """Return the slowest of the fast times: a busy machine only ever adds time."""
    return sorted(times_us)[int(FAST_SHARE * len(times_us))]


def make_step() -> Callable[[], None]:
    """Return a step of about STEP_US: products of matrices, on one thread."""
    import torch

    torch.set_num_threads(1)
    matrix = torch.randn(64, 64)

    def product_us(count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            matrix @ matrix
        return (time.perf_counter() - began) / count * 1e6

    fastest_us = min(product_us(20) for _ in range(50))
    count = max(round(STEP_US / fastest_us), 1)

    def step() -> None:
        for _ in range(count):
            matrix @ matrix

    return step


# ---- the loggers: `begin` returns the function that logs, `count` the points that were kept


class LabLogger:
    """Logs with `lab.log`."""

    def begin(self, place: Path) -> Log:
        from tuilab import Lab
        from tuilab.engine import messages
        from tuilab.engine.spawn import socket_pair
        from tuilab.record.journal.writer import Writer

        (place / "journal").mkdir()
        order = messages.WorkerOrder(run_dir=str(place), writer="worker-0", source_dir=str(place))
        line = messages.WorkerLine(socket_pair()[0])
        writer = Writer(place / "journal" / "worker-0.jsonl")
        lab = Lab(writer, place, line, order)
        return lambda step, value: lab.log(step, loss=value)

    def count(self, place: Path) -> int:
        from tuilab.record.live_run import read_run

        return sum(series.count for series in read_run(place).series.values())


class WriteLogger:
    """Logs with one `write` to a file."""

    def begin(self, place: Path) -> Log:
        file = os.open(place / "points", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return lambda step, value: os.write(file, _POINT.pack(step, time.time_ns(), value))

    def count(self, place: Path) -> int:
        return (place / "points").stat().st_size // _POINT.size


class CsvLogger:
    """Logs with the module csv, and flushes each row."""

    def begin(self, place: Path) -> Log:
        file = (place / "points.csv").open("w", newline="")
        write_row = csv.writer(file).writerow

        def log(step: int, value: float) -> None:
            write_row((step, time.time_ns(), value))
            file.flush()

        return log

    def count(self, place: Path) -> int:
        return len((place / "points.csv").read_text().splitlines())


class TrackioLogger:
    """Logs with trackio, which keeps the points in SQLite."""

    def begin(self, place: Path) -> Log:
        import trackio

        trackio.init(project="bench")
        return lambda step, value: trackio.log({"loss": value}, step=step)

    def count(self, place: Path) -> int:
        points = 0
        for file in place.rglob("*.db"):
            database = sqlite3.connect(file)
            tables = database.execute("select 1 from sqlite_master where name = 'metrics'")
            if tables.fetchone():
                (rows,) = database.execute("select count(*) from metrics").fetchone()
                points += rows
            database.close()
        return points


class TensorBoardLogger:
    """Logs with the SummaryWriter of torch."""

    def begin(self, place: Path) -> Log:
        from torch.utils.tensorboard.writer import SummaryWriter

        writer: Any = SummaryWriter(str(place))
        return lambda step, value: writer.add_scalar("loss", value, step)

    def count(self, place: Path) -> int:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

        points = 0
        for file in place.glob("events.*"):
            for event in EventFileLoader(str(file)).Load():
                if event.summary.value:
                    points += 1
        return points


class WandbLogger:
    """Logs with wandb, offline."""

    def begin(self, place: Path) -> Log:
        import wandb

        run: Any = wandb.init(mode="offline", dir=str(place), project="bench")
        return lambda step, value: run.log({"loss": value}, step=step)

    def count(self, place: Path) -> int:
        from wandb.proto.wandb_internal_pb2 import Record

        points = 0
        for file in place.glob("wandb/offline-run-*/*.wandb"):
            for data in leveldb_records(file.read_bytes()):
                record = Record()
                record.ParseFromString(data)
                if record.HasField("history"):
                    points += 1
        return points


def leveldb_records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a log in the format of LevelDB, for which wandb has no reader.

    The log has a head of 7 bytes, and then blocks of 32 KiB. A record is divided into pieces, none
    of which crosses the end of a block. Each piece has a head of 7 bytes: a checksum, the size, and
    the kind.
    """
    block_bytes = 32768
    head_bytes = 7
    whole, last = 1, 4  # kinds of pieces that end a record
    offset = 7
    record = b""
    while offset + head_bytes <= len(data):
        rest_of_block = block_bytes - offset % block_bytes
        if rest_of_block < head_bytes:
            offset += rest_of_block
            continue
        _, size, kind = struct.unpack_from("<IHB", data, offset)
        start = offset + head_bytes
        end = start + size
        if not kind or end > len(data):
            return  # nothing more was written
        record += data[start:end]
        offset = end
        if kind in (whole, last):
            yield record
            record = b""


PointLogger = LabLogger | WriteLogger | CsvLogger | TrackioLogger | TensorBoardLogger | WandbLogger
LOGGERS: dict[str, type[PointLogger]] = {
    "os.write": WriteLogger,
    "lab.log": LabLogger,
    "csv": CsvLogger,
    "trackio": TrackioLogger,
    "tensorboard": TensorBoardLogger,
    "wandb": WandbLogger,
}

if __name__ == "__main__":
    main()
