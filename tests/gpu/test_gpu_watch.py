"""A training script on a GPU that is watched as it is: what its steps take there is told, and what watching took."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

from tests.conftest import CHECKOUT
from tests.engine import newest, read_stream
from tuilab.record.events import GpuHeld, Logged

if TYPE_CHECKING:
    from tests.gpu.page import Page

STEPS = 200


def test_each_step_of_a_trainer_is_told_as_the_gpu_did_it(
    tuilab: Callable[..., "CompletedProcess[str]"], root: Path, page: "Page"
) -> None:
    script = [
        sys.executable,
        str(CHECKOUT / "examples" / "train_gpt.py"),
        "--device",
        "cuda",
        "--steps",
        str(STEPS),
    ]

    done = tuilab("exec", "--headless", "--json", "--", *script, timeout=120)

    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    run_dir = newest(root)
    assert run_dir is not None
    records = read_stream(run_dir / "journal" / "worker-0.jsonl")
    logged = [record.v for record in records if isinstance(record, Logged)]
    said = " ".join(
        re.findall(
            r"(?:a step takes|watching took)[^\\]*",
            (run_dir / "journal" / "worker-0.jsonl").read_text(),
        )
    )
    page.note("watching", "train_gpt.py", said)
    assert run["state"] == "succeeded" and "on the GPU" in said
    assert len(logged) == STEPS and all("backward root" in values for values in logged)
    assert all(0 < values["backward_ms"] < values["step_ms"] < 10_000 for values in logged[1:])
    assert any(isinstance(record, GpuHeld) and record.allocated_bytes > 0 for record in records)
