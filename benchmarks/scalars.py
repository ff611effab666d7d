"""Logging a scalar: what a call takes, tight and in a step of 0.73 ms, and what a SIGKILL loses; beside os.write and peers.

Each way has a process of its own, in which steps that log and steps that do not take turns; the fast tenth of each is compared,
and that of blocks of 20 calls in a tight loop, because a busy box only ever adds time. What a peer does in threads and
processes of its own slows the step alone as well, and is not told.
"""

import json
import signal
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.logged_step import WAYS
from benchmarks.pairs import Missing, Row, Way, in_rounds
from benchmarks.processes import INSTALL, PYTHON, of_peer, output, reap

FULL = {"rounds": 5, "calls": 20_000, "steps": 1500}
TINY = {"rounds": 1, "calls": 200, "steps": 20}
BASE, ALONE = "os.write of 24 bytes", "the step alone"
STEP, LOGGING = "us of that step", "us of one that logs"
SAID = {
    "os.write": BASE,
    "csv": "csv and flush",
    "tensorboard": "TensorBoard",
    "wandb": "wandb, offline",
}
PEERS = ("trackio", "tensorboard", "wandb")


def rows(place: Path, *, rounds: int, calls: int, steps: int) -> Iterator[Row]:
    ways = {SAID.get(name, name): way(place, name, calls, steps) for name in WAYS}
    lost = f"of {calls + 2 * steps:,} lost on SIGKILL"
    goals = {("lab.log", "us added to a step"): "20", ("lab.log", lost): "0"}
    found = list(in_rounds(ways, rounds, goals, beside=BASE, is_warmed=False))
    yield from (row for row in found if row.unit not in (STEP, LOGGING))
    bare = {row.what: row.values for row in found if row.unit == STEP}
    yield from (
        Row(f"a step with {row.what}", "us", row.values, ALONE, bare[row.what])
        for row in found
        if row.unit == LOGGING
    )


def way(place: Path, name: str, calls: int, steps: int) -> Way:
    measured = partial(logged, place, name, calls, steps)
    return of_peer(partial(of_installed, name, measured)) if name in PEERS else measured


def of_installed(name: str, way: Way) -> dict[str, float]:
    if find_spec(name) is None:
        raise Missing(f"no {name}; {INSTALL}")
    return way()


def logged(place: Path, name: str, calls: int, steps: int) -> dict[str, float]:
    """Return what one process took, and how many of its points are not there after it was killed."""
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
        words = [PYTHON, "-m", "benchmarks.logged_step", name, folder, str(calls), str(steps)]
        printed = output(words, place, {"TRACKIO_DIR": folder}, ends_with=(-signal.SIGKILL,))
        reap()  # what writes for it may have something left
        found = json.loads(printed.splitlines()[-1])
        kept = WAYS[name]().count(Path(folder))
    return {
        "us a call": found["tight_us"], "us added to a step": found["logged_us"] - found["bare_us"], STEP: found["bare_us"],
        LOGGING: found["logged_us"], f"of {found['points']:,} lost on SIGKILL": found["points"] - kept,
    }  # fmt: skip
