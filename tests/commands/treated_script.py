"""Run scripts under treatments, and read what the treatments report."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.commands.watched_script import WatchedScript, read_marks, watched_environment
from tuilab.commands.facts.treated import TreatedReport, merge_reports, switched_off
from tuilab.commands.tune.script_facts import ScriptFacts
from tuilab.commands.watcher._tuilab_treat import FACTS, STEPS, TREATMENTS

# Four batches of 16 rows in each epoch; the loss of each step is printed with all its digits.
TRAINING = """
import os, sys, torch
sys.path.insert(0, os.path.dirname(__file__))
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
def net():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1))
model = net()
def train(loader, optimizer, epochs=3, clear=None):
    for _ in range(epochs):
        for x, y in loader:
            (clear or optimizer.zero_grad)()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
def sgd(**more): return torch.optim.SGD(model.parameters(), lr=0.1, **more)
"""


@dataclass
class TreatedScript:
    """What a treated script printed, marked and reported."""

    seen: WatchedScript
    reports: list[TreatedReport]
    switched_off: list[str]
    facts: ScriptFacts
    source: str

    @property
    def printed(self) -> list[str]:
        return self.seen.done.stdout.splitlines()

    @property
    def losses(self) -> list[float]:
        return self.seen.roots

    def did(self, treatment: str) -> list[str]:
        """Return what a treatment did."""
        return [
            report.did for report in self.reports if report.treatment == treatment and report.did
        ]

    def why(self, treatment: str) -> list[str]:
        """Return why a treatment did nothing."""
        return [
            report.why for report in self.reports if report.treatment == treatment and report.why
        ]

    def is_set(self, treatment: str) -> bool:
        """Return whether the script does what the treatment would do."""
        return any(
            report.is_already_set for report in self.reports if report.treatment == treatment
        )

    def places(self, treatment: str) -> set[str]:
        """Return the lines of the script that a treatment names."""
        lines = self.source.splitlines()
        return {
            lines[report.line - 1].strip()
            for report in self.reports
            if report.treatment == treatment and report.line
        }


Treat = Callable[..., TreatedScript]


def write_training(folder: Path, script: str) -> tuple[Path, Path]:
    """Write a training. Return its path, and a new folder for its marks."""
    path = folder / "train.py"
    path.write_text(TRAINING + textwrap.dedent(script))
    marks = folder / "marks"
    number = 0
    while marks.exists():
        number += 1
        marks = folder / f"marks-{number}"
    marks.mkdir()
    return path, marks


def treating(treatments: str, steps: int = 0, *, facts: bool = False) -> dict[str, str]:
    """Return the variables of a treated process."""
    variables = {TREATMENTS: treatments}
    if steps:
        variables[STEPS] = str(steps)
    if facts:
        variables[FACTS] = "1"
    return variables


def run_treated(
    folder: Path, script: str, variables: Mapping[str, str], words: tuple[str, ...] = ()
) -> TreatedScript:
    """Run a training in an interpreter of its own; `words` start it instead of Python alone."""
    path, marks = write_training(folder, script)
    done = subprocess.run(
        [sys.executable, *words, str(path)],
        capture_output=True,
        text=True,
        env={**watched_environment(marks), **variables},
        cwd=folder,
        timeout=200,
    )
    return read_treated(path, marks, done)


def read_treated(
    path: Path, marks: Path, done: "subprocess.CompletedProcess[str]"
) -> TreatedScript:
    """Read what a treated script left."""
    troubles = [trouble.read_text() for trouble in marks.glob("*.trouble")]
    assert not troubles, (troubles, done)
    seen = read_marks(marks, done)
    treatments = [process.treatments for process in seen.processes]
    facts = ScriptFacts()
    for process in treatments:
        if process.script_facts() != ScriptFacts():
            facts = process.script_facts()
            break
    return TreatedScript(
        seen, merge_reports(treatments), switched_off(treatments), facts, path.read_text()
    )


def environment_of(marks: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a treated process, without treatments of this one."""
    return {**os.environ, **watched_environment(marks), **variables}
