"""numpy and scipy as we load them: with no threads of their own, and nothing of that for whoever is started meanwhile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine import until
from tuilab.engine.spare import spawn_supervisor

LOADS = """
import os, subprocess
from tuilab.arrays import np, special
special()
told = subprocess.run(["printenv", "OPENBLAS_NUM_THREADS"], capture_output=True, text=True).stdout
print(len(os.listdir("/proc/self/task")), repr(told), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.parametrize(("asked", "told"), [(None, ["1", "''", "None"]), ("2", ["'2\\n'", "2"])])
def test_what_draws_and_judges_starts_no_threads_unless_the_user_has_asked_for_some(
    asked: str | None, told: list[str]
) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")
    }
    environment |= {} if asked is None else {"OPENBLAS_NUM_THREADS": asked}

    done = subprocess.run(
        [sys.executable, "-c", LOADS], env=environment, capture_output=True, text=True, timeout=60
    )

    assert done.stderr == "" and done.stdout.split()[-len(told) :] == told


def test_what_is_started_while_they_are_loaded_gets_the_environment_of_the_user() -> None:
    os.putenv("OPENBLAS_NUM_THREADS", "1")  # where C looks, as meanwhile
    try:
        process = spawn_supervisor("code")  # which reads until its stdin ends
    finally:
        os.unsetenv("OPENBLAS_NUM_THREADS")
    told = until(
        Path(f"/proc/{process.pid}/environ").read_bytes
    )  # a program that is being started has none yet
    process.communicate(timeout=60)

    assert b"OPENBLAS_NUM_THREADS=1" not in told and b"PATH=" in told
