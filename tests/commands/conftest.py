"""Scripts that are watched: each runs in a fork of a process that has loaded the real torch."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.commands.treated_script import (
    Treat,
    TreatedScript,
    environment_of,
    read_treated,
    treating,
    write_training,
)
from tests.commands.watched_script import (
    Unwatched,
    Watch,
    WatchedScript,
    read_marks,
    watched_environment,
    write_script,
)
from tests.warm_process import WarmTuilab


@pytest.fixture(scope="session")
def warm_script(environment: None) -> Iterator[WarmTuilab]:
    waiting = WarmTuilab(sys.executable, "tests.commands.warm_script")
    yield waiting
    waiting.end()


@pytest.fixture
def watch(tmp_path: Path, warm_script: WarmTuilab) -> Watch:
    """Run a script with a model, and return what was seen of it; it has to end well unless `fails`."""

    def run(script: str, how: str = "all", *, fails: bool = False) -> WatchedScript:
        path, marks = write_script(tmp_path, script)
        done = warm_script.run((str(path),), watched_environment(marks, how), tmp_path, 100)
        assert fails or (done.returncode == 0 and not list(marks.glob("*.trouble"))), (done, [
            one.read_text() for one in marks.glob("*.trouble")
        ])  # fmt: skip
        return read_marks(marks, done)

    return run


@pytest.fixture
def treat(tmp_path: Path, warm_script: WarmTuilab) -> Treat:
    """Run a training under treatments, and return what it reports; it has to end well unless `fails`."""

    def run(
        treatments: str, script: str, *, steps: int = 0, facts: bool = False, fails: bool = False
    ) -> TreatedScript:
        path, marks = write_training(tmp_path, script)
        variables = treating(treatments, steps, facts=facts)
        done = warm_script.run((str(path),), environment_of(marks, variables), tmp_path, 200)
        assert fails or done.returncode == 0, done
        return read_treated(path, marks, done)

    return run


@pytest.fixture
def unwatched(tmp_path: Path, warm_script: WarmTuilab) -> Unwatched:
    """Run a script with a model as it would be without the lab."""

    def run(script: str) -> "CompletedProcess[str]":
        path, _ = write_script(tmp_path, script)
        return warm_script.run((str(path),), {**os.environ, "OMP_NUM_THREADS": "1"}, tmp_path, 100)

    return run
