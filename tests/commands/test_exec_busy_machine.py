"""Two runs of one script, of which a neighbour takes the core from the second: the gate does not blame the code."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.test_core_use import SPIN, has_schedstat, running
from tests.engine import look, newest

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]

SCRIPT = """
import json, os, sys, time
from _tuilab_watch import layout
from _tuilab_watch.ring import Ring

os.sched_setaffinity(0, {int(sys.argv[1])})
ring = Ring(os.environ["TUILAB_WATCH"])
ring.text(layout.HELLO, json.dumps({"pid": os.getpid(), "torch": "2.99", "python": "3.99", "threads": 1}))
ring.text(layout.NAME, "SGD\\noptimizer 1", 1)
ends = time.monotonic() + 5
while time.monotonic() < ends:
    works_until = time.thread_time() + 0.01
    began = time.monotonic_ns()
    while time.thread_time() < works_until:
        pass
    ring.mark(layout.USED, time.thread_time_ns(), time.process_time_ns(), 0.0, 1, 1)
    ring.mark(layout.STEPPED, began, time.monotonic_ns(), 0.0, 0, 1)
"""


@pytest.mark.slow
@has_schedstat
def test_gate_blames_a_neighbour_of_one_run_on_no_code(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    core = max(os.sched_getaffinity(0))
    words = ("exec", "--quiet", "--", sys.executable, str(script), str(core))

    tuilab(*words)
    with running(SPIN, core), running(SPIN, core):
        tuilab(*words)
    waits = look(newest(root) or root).summary.core_waits
    gate = tuilab("compare", "last~1", "last", "--fail-on", "slower:5%")

    assert waits is not None and waits.waited_s > 0
    assert gate.returncode == 0, gate.stdout
    assert "not decided, as in run " in gate.stderr and "other processes used" in gate.stderr
