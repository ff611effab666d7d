"""The benchmark of watching, so small that its figures mean nothing: it runs to its end and keeps what it measured."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

pytestmark = [pytest.mark.slow, pytest.mark.real_torch, pytest.mark.timeout(600)]


def test_what_watching_costs_is_measured_and_absent_peers_are_left_out(tmp_path: Path) -> None:
    words = ("--tiny", "--json", "found.json", "--traceml", "no-traceml", "--torchwatch", "no-torchwatch")

    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "benchmarks" / "watching.py"), *words],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert [(row["watch"], row["step"]) for row in found["steps"]] == [
        ("steps", "short"), ("steps", "1 ms"), ("all", "short"), ("all", "1 ms")
    ]  # fmt: skip
    assert all(row["own_us"]["median"] > 0 for row in found["steps"])
    ways = ["bare", "bare again", "--watch nothing", "--watch steps", "--watch all"]
    assert [row["way"] for row in found["trainers"] if row["trainer"] == "train_cnn"] == ways
    assert {line.partition(":")[0] for line in found["left_out"]} >= {"traceml", "torchwatch"}
    assert "left out: traceml: no command no-traceml; --traceml names one" in done.stdout
