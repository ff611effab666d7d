"""Measure the logging of a scalar, tight, in a step, and on a SIGKILL, next to os.write and peers.

A step takes 0.73 ms. Each logger has a process of its own, in which steps that log and steps that
do not log take turns. The fast tenth of both is compared, and the fast tenth of blocks of 20 calls
in a tight loop, because a busy machine only ever adds time. A peer may do work in threads and
processes of its own. That slows both kinds of steps, so these numbers do not show it.
"""

import json
import signal
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.logged_step import LOGGERS
from benchmarks.pairs import Measurement, Missing, Row, in_rounds
from benchmarks.processes import INSTALL, PYTHON, as_peer, reap, run_command

FULL = {"rounds": 5, "calls": 20_000, "steps": 1500}
TINY = {"rounds": 1, "calls": 200, "steps": 20}
BASE = "os.write of 24 bytes"
ALONE = "the step alone"
STEP = "us of that step"
LOGGING = "us of one that logs"
TITLES = {
    "os.write": BASE,
    "csv": "csv and flush",
    "tensorboard": "TensorBoard",
    "wandb": "wandb, offline",
}
PEERS = ("trackio", "tensorboard", "wandb")


def rows(place: Path, *, rounds: int, calls: int, steps: int) -> Iterator[Row]:
    """Yield what a call of each logger takes, and then what a step takes that logs."""
    measurements = {}
    for name in LOGGERS:
        measurements[TITLES.get(name, name)] = make_measurement(place, name, calls, steps)
    lost = f"of {calls + 2 * steps:,} lost on SIGKILL"
    goals = {("lab.log", "us added to a step"): "20", ("lab.log", lost): "0"}
    all_rows = list(in_rounds(measurements, rounds, goals, beside=BASE, is_warmed=False))
    for row in all_rows:
        if row.unit not in (STEP, LOGGING):
            yield row
    bare_us = {row.what: row.values for row in all_rows if row.unit == STEP}
    for row in all_rows:
        if row.unit == LOGGING:
            yield Row(f"a step with {row.what}", "us", row.values, ALONE, bare_us[row.what])


def make_measurement(place: Path, name: str, calls: int, steps: int) -> Measurement:
    """Return the measurement of a logger; a peer may be missing."""
    measurement = partial(measure_logger, place, name, calls, steps)
    if name in PEERS:
        return as_peer(partial(measure_if_installed, name, measurement))
    return measurement


def measure_if_installed(name: str, measurement: Measurement) -> dict[str, float]:
    """Measure a peer that is a package, if it is installed."""
    if find_spec(name) is None:
        raise Missing(f"no {name}; {INSTALL}")
    return measurement()


def measure_logger(place: Path, name: str, calls: int, steps: int) -> dict[str, float]:
    """Return the times of a process that logs, and how many of its points a kill lost."""
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
        module = "benchmarks.logged_step"
        command = [PYTHON, "-m", module, name, folder, str(calls), str(steps)]
        variables = {"TRACKIO_DIR": folder}
        printed = run_command(command, place, variables, ends_with=(-signal.SIGKILL,))
        reap()  # a process of the peer may still write points
        result = json.loads(printed.splitlines()[-1])
        kept_points = LOGGERS[name]().count(Path(folder))
    return {
        "us a call": result["tight_us"],
        "us added to a step": result["logged_us"] - result["bare_us"],
        STEP: result["bare_us"],
        LOGGING: result["logged_us"],
        f"of {result['points']:,} lost on SIGKILL": result["points"] - kept_points,
    }
