"""What tuilab sees of a script that is watched, for tests."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
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
    """A value that a logger was told."""

    step: float
    name: str
    value: float
    source: str


@dataclass
class WatchedScript:
    """The marks of each process of a script, and how the script ended."""

    done: "subprocess.CompletedProcess[str]"
    processes: list[MarkedProcess]
    marks: list[Mark]  # of all, one process after the other, without readings of CPU times
    by_process: list[list[Mark]]
    with_readings: list[Mark]

    @property
    def kinds(self) -> str:
        """What happened, in order."""
        return " ".join(KINDS[mark.kind] for mark in self.marks if mark.kind in KINDS)

    @property
    def optimizers(self) -> list[str]:
        """Which optimizer stepped, in order."""
        (process,) = self.processes
        return [
            process.names[mark.name].replace("\noptimizer", "")
            for mark in self.marks
            if mark.kind == layout.STEPPED
        ]

    @property
    def roots(self) -> list[float]:
        return [
            mark.value
            for mark in self.marks
            if mark.kind == layout.WENT_BACK and mark.flags & layout.HAS_VALUE
        ]

    @property
    def told(self) -> list[LoggedValue]:
        (process,) = self.processes
        found = []
        for mark in self.marks:
            if mark.kind == layout.LOGGED:
                name, source = process.names[mark.name].split("\n")
                found.append(
                    LoggedValue(
                        layout.float_of(mark.ended) if mark.number else mark.ended,
                        name,
                        mark.value,
                        source,
                    )
                )
        return found

    @property
    def steps(self) -> list[Step]:
        steps = Steps()
        return steps.take(self.with_readings) + steps.finish()


Watch = Callable[..., WatchedScript]


def write_script(folder: Path, script: str) -> tuple[Path, Path]:
    """Write a script, and make the folder for its marks."""
    path, marks = folder / "script.py", folder / "marks"
    path.write_text(MODEL + textwrap.dedent(script))
    marks.mkdir(exist_ok=True)
    return path, marks


def watched_environment(marks: Path, how: str = "all") -> dict[str, str]:
    """Return the variables of a process that is watched."""
    before = os.environ.get("PYTHONPATH", "")
    path = f"{WATCHER}:{before}" if before else WATCHER
    return {
        **os.environ,
        VARIABLE: str(marks),
        HOW: how,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
    }


Unwatched = Callable[[str], "subprocess.CompletedProcess[str]"]


def run_afresh(
    folder: Path, script: str, how: str = "all", words: tuple[str, ...] = ()
) -> WatchedScript:
    """Run a script in an interpreter of its own, as torch's own door lets the watcher in."""
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
    """Run a script as it would be without the lab."""
    path, _ = write_script(folder, script)
    return subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=100,
    )


def read_marks(folder: Path, done: "subprocess.CompletedProcess[str]") -> WatchedScript:
    """Read what was marked."""
    marks = MarksFolder(folder)
    found: dict[int, list[Mark]] = {}
    for process, news in marks.read(is_last=True):
        found.setdefault(process.pid, []).extend(news)
    processes = [
        process for process in marks.processes.values() if process.hello or process.trouble
    ]
    with_readings = [mark for news in found.values() for mark in news]
    by_process = [[mark for mark in news if mark.kind != layout.USED] for news in found.values()]
    return WatchedScript(
        done, processes, [mark for news in by_process for mark in news], by_process, with_readings
    )
