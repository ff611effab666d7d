"""What it takes to open a run with a million points, beside a reader that only parses each line.

    python benchmarks/opening.py [RECORDS]

Ours checks every line, keeps its sequence and makes the curves; json and msgspec only parse. All in turns, the best of three.
"""

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec

from tuilab.record.encoding import encode_finite
from tuilab.record.events import Logged, Record
from tuilab.record.journal.writer import Writer
from tuilab.record.live_run import Watch

decode = msgspec.json.Decoder(Record, strict=False).decode


def main() -> None:
    records = int(sys.argv[1]) if sys.argv[1:] else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        stream = Path(folder) / "journal" / "worker-0.jsonl"
        write(stream, records)
        readers: list[Callable[[Path], None]] = [read_with_json, read_with_msgspec, read_ours]
        best = [math.inf] * len(readers)
        for _ in range(3):
            for number, reader in enumerate(readers):
                began = time.perf_counter()
                reader(stream)
                best[number] = min(best[number], time.perf_counter() - began)
        first, longest = portions(stream)
    plain_json, plain_msgspec, ours = best
    print(f"{records} records: all in {ours:.2f} s, the first curve after {first * 1e3:.0f} ms, no portion longer than "
          f"{longest * 1e3:.0f} ms")  # fmt: skip
    print(f"json.loads a line  {plain_json:.2f} s: ours takes {ours / plain_json:.2f} times as long")
    print(f"msgspec a line     {plain_msgspec:.2f} s: ours takes {ours / plain_msgspec:.2f} times as long")


def write(stream: Path, records: int) -> None:
    stream.parent.mkdir()
    writer = Writer(stream)
    for step in range(records):
        writer.append(Logged(s=step, v={"loss": math.exp(-step / records) + math.sin(step) / 10}), encode_finite)
    writer.close()


def read_with_json(stream: Path) -> None:
    with stream.open("rb") as lines:
        for line in lines:
            json.loads(line[9:])


def read_with_msgspec(stream: Path) -> None:
    with stream.open("rb") as lines:
        for line in lines:
            decode(line[9:])


def read_ours(stream: Path) -> None:
    watch = Watch(stream.parent.parent)
    while watch.refresh():
        pass
    watch.close()


def portions(stream: Path) -> tuple[float, float]:
    """Return the seconds to the first points and of the longest portion."""
    watch = Watch(stream.parent.parent)
    times = [time.perf_counter()]
    while watch.refresh():
        times.append(time.perf_counter())
    watch.close()
    return times[1] - times[0], max(later - earlier for earlier, later in pairwise(times))


if __name__ == "__main__":
    main()
