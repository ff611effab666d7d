"""Run scripts under the watcher, and read the marks that it has written."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tests.commands.warm_script import WATCHER
from tuilab.commands.marks import Mark, MarkedProcess, MarksFolder
from tuilab.commands.steps import Step, Steps
from tuilab.commands.watcher._tuilab_watch import HOW, VARIABLE, layout

KINDS = {
    layout.STEPPED: "step",
    layout.SKIPPED: "skip",
    layout.WENT_FORWARD: "forward",
    layout.WENT_BACK: "back",
    layout.WAITED: "wait",
}
MODEL = """
import os, sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
def loss(): return model(torch.ones(8, 4)).pow(2).mean()
def sgd(of=model): return torch.optim.SGD(of.parameters(), lr=0.1)
"""


class LoggedValue(NamedTuple):
    """A value that the script gave to a logger."""

    step: float
    name: str
    value: float
    source: str


@dataclass
class WatchedScript:
    """The marks of each process of a script, and how the script ended."""

    done: "subprocess.CompletedProcess[str]"
    processes: list[MarkedProcess]
    marks: list[Mark]  # of all processes, one after another, without readings of CPU times
    by_process: list[list[Mark]]  # the same
    with_readings: list[Mark]  # of all processes, with readings of CPU times

    @property
    def kinds(self) -> str:
        """The kinds of the marks that KINDS has a word for, in order."""
        return " ".join(KINDS[mark.kind] for mark in self.marks if mark.kind in KINDS)

    @property
    def optimizers(self) -> list[str]:
        """The optimizer of each step, in order."""
        (process,) = self.processes
        steps = [mark for mark in self.marks if mark.kind == layout.STEPPED]
        return [process.names[step.name].replace("\noptimizer", "") for step in steps]

    @property
    def roots(self) -> list[float]:
        """The value of the root of each backward that has one."""
        backwards = [mark for mark in self.marks if mark.kind == layout.WENT_BACK]
        return [mark.value for mark in backwards if mark.flags & layout.HAS_VALUE]

    @property
    def told(self) -> list[LoggedValue]:
        """The values that the script gave to loggers."""
        (process,) = self.processes
        values = []
        for mark in self.marks:
            if mark.kind != layout.LOGGED:
                continue
            step: float = mark.ended
            if mark.number:
                step = layout.float_of(mark.ended)
            name, source = process.names[mark.name].split("\n")
            values.append(LoggedValue(step, name, mark.value, source))
        return values

    @property
    def steps(self) -> list[Step]:
        """The steps that the marks are cut into."""
        steps = Steps()
        return steps.take(self.with_readings) + steps.finish()


Watch = Callable[..., WatchedScript]


def write_script(folder: Path, script: str) -> tuple[Path, Path]:
    """Write a script. Return its path, and a new folder for its marks."""
    path = folder / "script.py"
    path.write_text(MODEL + textwrap.dedent(script))
    marks = folder / "marks"
    marks.mkdir(exist_ok=True)
    return path, marks


def watched_environment(marks: Path, how: str = "all") -> dict[str, str]:
    """Return the environment of a process that is watched."""
    path = WATCHER
    if os.environ.get("PYTHONPATH"):
        path += f":{os.environ['PYTHONPATH']}"
    watching = {VARIABLE: str(marks), HOW: how, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return {**os.environ, **watching}


Unwatched = Callable[[str], "subprocess.CompletedProcess[str]"]


def run_afresh(
    folder: Path, script: str, how: str = "all", words: tuple[str, ...] = ()
) -> WatchedScript:
    """Run a script in an interpreter of its own, where torch itself loads the watcher."""
    path, marks = write_script(folder, script)
    done = subprocess.run(
        [sys.executable, str(path), *words],
        capture_output=True,
        text=True,
        env=watched_environment(marks, how),
        timeout=100,
    )
    return read_marks(marks, done)


def run_unwatched(folder: Path, script: str) -> "subprocess.CompletedProcess[str]":
    """Run a script without the watcher."""
    path, _ = write_script(folder, script)
    return subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=100,
    )


def read_marks(folder: Path, done: "subprocess.CompletedProcess[str]") -> WatchedScript:
    """Read the marks of all processes of a script that has ended."""
    reader = MarksFolder(folder)
    marks_of_pid: dict[int, list[Mark]] = {}
    for process, news in reader.read(is_last=True):
        marks_of_pid.setdefault(process.pid, []).extend(news)
    processes = []
    for process in reader.processes.values():
        if process.hello or process.trouble:
            processes.append(process)
    by_process = []
    with_readings = []
    for marks in marks_of_pid.values():
        with_readings += marks
        by_process.append([mark for mark in marks if mark.kind != layout.USED])
    every = list(chain.from_iterable(by_process))
    return WatchedScript(done, processes, every, by_process, with_readings)
