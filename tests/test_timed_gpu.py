"""The GPU of `tests/fakes/timed_gpu.py` takes the time that its rules say, and waits where a GPU does."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.fakes import cuda_values
from tests.tune_scripts import FOLDER

pytestmark = [pytest.mark.library, pytest.mark.real_torch, pytest.mark.timeout(600)]

Effects = dict[str, Any]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled model."""
    if shutil.which("g++") is None:
        pytest.skip("no g++: the model of a GPU is in C++")
    path = tmp_path_factory.mktemp("gpu") / "gpu.so"
    cuda_values.build(path)
    return path


@pytest.fixture(scope="module")
def measure(library: Path) -> Callable[..., Effects]:
    """Return a function that measures the effects in a process of its own."""

    def measure_effects(**variables: str) -> Effects:
        command = [sys.executable, "-m", "tests.timed_gpu_effects", str(library)]
        # a fixture of a module runs before PYTHONPATH loses the stand-in for torch
        environment = {**os.environ, "PYTHONPATH": "", **variables}
        done = subprocess.run(
            command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        effects: Effects = json.loads(done.stdout)
        return effects

    return measure_effects


@pytest.fixture(scope="module")
def effects(measure: Callable[..., Effects]) -> Effects:
    return measure()


def test_product_takes_the_time_of_its_precision(effects: Effects) -> None:
    operations = 2 * 64**3

    assert effects["ieee"]["busy_ns"] == operations
    assert effects["tf32"]["busy_ns"] == operations / 4
    assert effects["bfloat16"]["busy_ns"] == operations / 8


def test_pointwise_operator_takes_the_time_of_its_bytes(effects: Effects) -> None:
    assert effects["addition"]["busy_ns"] == 3 * 4 * (1 << 16)  # two are read, one is written
    assert effects["addition"]["launches"] == 1
    assert effects["view"] == {"launches": 0, "busy_ns": 0, "waits": 0}


def test_operators_on_lists_launch_one_kernel(effects: Effects) -> None:
    assert effects["single"]["launches"] == 50 * effects["foreach"]["launches"]
    assert effects["fused"]["launches"] == 2  # the counts of steps, and the parameters


def test_compiled_code_launches_fewer_kernels(effects: Effects) -> None:
    assert effects["eager"]["launches"] == 5
    assert effects["compiled"]["launches"] == 2  # all operators before the product, and the product
    assert effects["cuda_graph"]["launches"] == 1
    assert effects["compiled"]["busy_ns"] < effects["eager"]["busy_ns"]


def test_replayed_graph_keeps_its_kernels(effects: Effects) -> None:
    assert effects["replay"]["launches"] == 1
    assert effects["replay"]["busy_ns"] == effects["eager"]["busy_ns"]


def test_launch_and_pinned_copy_leave_the_gpu_busy(effects: Effects) -> None:
    assert effects["is_busy_after_launch"]
    assert effects["is_busy_after_pinned_copy"]
    assert effects["pinned"]["waits"] == 0


def test_pageable_copy_waits_and_takes_twice_as_long(effects: Effects) -> None:
    fixed_ns = 20_000  # that each kernel takes at least

    assert effects["is_idle_after_pageable_copy"]
    pageable_ns = effects["pageable"]["busy_ns"] - fixed_ns
    pinned_ns = effects["pinned"]["busy_ns"] - fixed_ns
    assert pageable_ns == 2 * pinned_ns


def test_item_waits_for_the_gpu(effects: Effects) -> None:
    assert effects["item"]["waits"] == 1
    assert effects["is_idle_after_item"]


def test_events_measure_the_time_of_the_gpu(effects: Effects) -> None:
    assert effects["is_event_pending"]
    assert effects["is_event_done"]
    assert effects["event_ms"] == effects["addition"]["busy_ns"] / 1e6


def test_expandable_segments_need_no_retry(
    effects: Effects, measure: Callable[..., Effects]
) -> None:
    expandable = measure(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")

    assert effects["retries"] == 1
    assert expandable["retries"] == 0


@pytest.mark.parametrize("script", sorted(path.stem for path in FOLDER.glob("gpu_*.py")))
def test_script_for_a_gpu_runs_on_the_model(script: str, library: Path) -> None:
    command = [sys.executable, "-m", "tests.fakes.timed_gpu", str(library)]
    command += [str(FOLDER / f"{script}.py"), "--steps", "2"]

    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "step 0 loss " in done.stdout
