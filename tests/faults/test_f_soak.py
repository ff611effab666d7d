"""The share of the soak that every run of the suite takes; CONTRIBUTING.md says how to run an hour of it."""

import subprocess
import sys

import pytest

from tests.conftest import CHECKOUT

pytestmark = pytest.mark.faults

SOAKED_S = 60  # of one worker; what it lasts longer is the step that it is in by then
SEED = 87


@pytest.mark.timeout(SOAKED_S + 300)
def test_87_short_runs_with_faults_drawn_by_chance_leave_nothing_and_lose_nothing() -> None:
    words = ["--minutes", str(SOAKED_S / 60), "--seed", str(SEED)]

    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.soak", *words],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
