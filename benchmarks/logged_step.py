"""One way to log a scalar in this process, which is killed behind the last call; `scalars.py` starts it.

python -m benchmarks.logged_step WAY FOLDER CALLS STEPS

It prints, as JSON, what a call takes in a tight loop and in a step, and how many points were logged.
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
FAST = 0.1  # of the steps, and of blocks of calls: those that nobody disturbed
BLOCK = 20  # calls
_LAYOUT = struct.Struct("<qqd")  # a step, a time, a value


def main() -> None:
    name, folder, calls, steps = sys.argv[1:]
    log = WAYS[name]().begin(Path(folder))
    found = in_steps(log, int(steps))
    found["tight_us"] = tight(log, int(found["points"]), int(calls))
    found["points"] += int(calls)
    print("\n" + json.dumps(found), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def in_steps(log: Log, steps: int) -> dict[str, float]:
    """Return the microseconds of a step that logs and of one that does not; it logs two points a turn."""
    step, numbers = work(), itertools.count()
    taken: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(steps):
        for logs in random.sample([False, True], 2):
            for _ in range(2):  # the first after a change finds other things in the caches
                began = time.perf_counter()
                step()
                if logs:
                    log(next(numbers), 0.5)
                last_us = (time.perf_counter() - began) * 1e6
            taken[logs].append(last_us)
    bare_us, logged_us = (sorted(taken[logs])[int(FAST * steps)] for logs in (False, True))
    return {"bare_us": bare_us, "logged_us": logged_us, "points": next(numbers)}


def tight(log: Log, first: int, calls: int) -> float:
    """Return the microseconds of a call of so many without anything between them."""
    taken = []
    for start in range(first, first + calls, BLOCK):
        began = time.perf_counter()
        for number in range(start, start + BLOCK):
            log(number, number / 2)
        taken.append((time.perf_counter() - began) / BLOCK * 1e6)
    return sorted(taken)[int(FAST * len(taken))]


def work() -> Callable[[], None]:
    """Return a step of about so long: products of matrices, on one thread."""
    import torch

    torch.set_num_threads(1)
    matrix = torch.randn(64, 64)

    def products(count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            matrix @ matrix
        return (time.perf_counter() - began) / count * 1e6

    count = max(round(STEP_US / min(products(20) for _ in range(50))), 1)

    def step() -> None:
        for _ in range(count):
            matrix @ matrix

    return step


class Lab:
    def begin(self, place: Path) -> Log:
        from tuilab import Lab as RealLab
        from tuilab.engine import messages
        from tuilab.engine.spawn import socket_pair
        from tuilab.record.journal.writer import Writer

        (place / "journal").mkdir()
        order = messages.WorkerOrder(run_dir=str(place), writer="worker-0", source_dir=str(place))
        line = messages.WorkerLine(socket_pair()[0])
        lab = RealLab(Writer(place / "journal" / "worker-0.jsonl"), place, line, order)
        return lambda step, value: lab.log(step, loss=value)

    def count(self, place: Path) -> int:
        from tuilab.record.live_run import read_run

        return sum(series.count for series in read_run(place).series.values())


class Write:
    def begin(self, place: Path) -> Log:
        file = os.open(place / "points", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return lambda step, value: os.write(file, _LAYOUT.pack(step, time.time_ns(), value))

    def count(self, place: Path) -> int:
        return (place / "points").stat().st_size // _LAYOUT.size


class Csv:
    def begin(self, place: Path) -> Log:
        file = (place / "points.csv").open("w", newline="")
        row = csv.writer(file).writerow

        def log(step: int, value: float) -> None:
            row((step, time.time_ns(), value))
            file.flush()

        return log

    def count(self, place: Path) -> int:
        return len((place / "points.csv").read_text().splitlines())


class Trackio:
    def begin(self, place: Path) -> Log:
        import trackio

        trackio.init(project="bench")
        return lambda step, value: trackio.log({"loss": value}, step=step)

    def count(self, place: Path) -> int:
        found = 0
        for file in place.rglob("*.db"):
            kept = sqlite3.connect(file)
            if kept.execute("select 1 from sqlite_master where name = 'metrics'").fetchone():
                found += kept.execute("select count(*) from metrics").fetchone()[0]
            kept.close()
        return found


class TensorBoard:
    def begin(self, place: Path) -> Log:
        from torch.utils.tensorboard.writer import SummaryWriter

        writer: Any = SummaryWriter(str(place))
        return lambda step, value: writer.add_scalar("loss", value, step)

    def count(self, place: Path) -> int:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

        events = itertools.chain.from_iterable(
            EventFileLoader(str(file)).Load() for file in place.glob("events.*")
        )
        return sum(bool(event.summary.value) for event in events)


class Wandb:
    def begin(self, place: Path) -> Log:
        import wandb

        run: Any = wandb.init(mode="offline", dir=str(place), project="bench")
        return lambda step, value: run.log({"loss": value}, step=step)

    def count(self, place: Path) -> int:
        from wandb.proto.wandb_internal_pb2 import Record

        found = 0
        for file in place.glob("wandb/offline-run-*/*.wandb"):
            for data in leveldb_records(file.read_bytes()):
                record = Record()
                record.ParseFromString(data)
                found += record.HasField("history")
        return found


def leveldb_records(data: bytes) -> Iterator[bytes]:
    """Return the records of a log as LevelDB keeps it, which wandb has no reader for: in blocks, 7 bytes ahead of the first."""
    at, record = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        if not kind or at + 7 + size > len(data):
            return  # nothing more was written
        record += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


WAYS: dict[str, type[Lab | Write | Csv | Trackio | TensorBoard | Wandb]] = {
    "os.write": Write, "lab.log": Lab, "csv": Csv, "trackio": Trackio, "tensorboard": TensorBoard, "wandb": Wandb,
}  # fmt: skip

if __name__ == "__main__":
    main()
