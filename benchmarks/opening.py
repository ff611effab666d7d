"""Opening runs: one of many points and one of many arms, read and on the screens, beside plain parsers and runs of few."""

import json
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec

from benchmarks.alone import alone
from benchmarks.pairs import Row, Way, in_rounds
from benchmarks.terminals import processor_s, tuilab, until_rest, until_shown
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
    runs = place / "runs"
    empty, long = make(runs, "empty", points=0), make(runs, "long", points=points)
    few, many = (make(runs, f"arms{count}", points_of_arm, arms=count) for count in (1, arms))
    stream, name = long / "journal" / "worker-0.jsonl", f"{points:,} points"

    readers: dict[str, Callable[[Path], None]] = {
        "json.loads a line": read_with_json, "msgspec a line": read_with_msgspec, f"read {name}": read_ours,
    }  # fmt: skip
    yield from in_rounds({way: partial(alone, reader, place, stream) for way, reader in readers.items()}, rounds,
                         beside="json.loads a line")  # fmt: skip
    yield from in_rounds({f"read {name}, in portions": lambda: portions(long)}, rounds)

    yield from in_rounds({f"the screens, {name}, first time": lambda: on_screens(place, long)}, 1)
    again, none = f"the screens, {name}, again", "the screens, no points"
    ways: dict[str, Way] = {
        none: lambda: on_screens(place, empty),
        again: lambda: on_screens(place, long),
    }
    yield from in_rounds(ways, opened, {(again, "s to all of it"): "0.02 s more"}, beside=none)

    one_arm, every_arm = "the screens, 1 arm", f"the screens, {arms:,} arms"
    ways = {one_arm: lambda: on_screens(place, few), every_arm: lambda: on_screens(place, many)}
    yield from in_rounds(ways, opened, beside=one_arm)


def make(runs: Path, name: str, points: int, *, arms: int = 0) -> Path:
    """Make a run that is over, with so many points, of each arm if it has any."""
    run_dir = make_run(runs, started(scenario=name), name=name)
    writer = Writer(run_dir / "journal" / "worker-0.jsonl")
    for arm in [f"arm {number}" for number in range(arms)] or [""]:
        for step in range(points):
            loss = {"loss": math.exp(-step / points) + math.sin(step) / 10}
            writer.append(Logged(s=step, v=loss, a=arm), encode_finite)
    writer.close()
    supervisor = Writer(run_dir / "journal" / "supervisor.jsonl", goes_on=True)
    supervisor.append(
        StateChanged(state="succeeded")
    )  # the last of all: who shows it has read the others
    supervisor.close()
    return run_dir


def read_with_json(stream: Path) -> None:
    with stream.open("rb") as lines:
        for line in lines:
            json.loads(line[9:])


def read_with_msgspec(stream: Path) -> None:
    with stream.open("rb") as lines:
        for line in lines:
            decode(line[9:])


def read_ours(stream: Path) -> None:
    """Check every line, keep its sequence and make the curves."""
    watch = Watch(stream.parent.parent)
    while watch.refresh():
        pass
    watch.close()


def portions(run_dir: Path) -> dict[str, float]:
    """Return the milliseconds to the first points and of the longest portion."""
    watch = Watch(run_dir)
    times = [time.perf_counter()]
    while watch.refresh():
        times.append(time.perf_counter())
    watch.close()
    longest_s = max(later - earlier for earlier, later in pairwise(times))
    return {
        "ms to the first points": 1e3 * (times[1] - times[0]),
        "ms, the longest": 1e3 * longest_s,
    }


def on_screens(place: Path, run_dir: Path) -> dict[str, float]:
    """Return what it takes until the screens show a run, and until they have read and drawn all of it."""
    with tuilab(place, "attach", run_dir.name) as term:
        began = time.perf_counter()
        shown_s = until_shown(term, "succeeded")
        rests_s = until_rest(lambda: processor_s(term)) - began
        return {
            "s to its state": shown_s,
            "s to all of it": rests_s,
            "processor s": processor_s(term),
        }
