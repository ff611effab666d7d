"""What every process of a scenario begins with: one thread, and the same random numbers."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
import torch

from tests.engine import look, newest, write_scenario
from tuilab.lab.worker import begin


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def drawn() -> tuple[float, float, float]:
    return torch.rand(()).item(), random.random(), float(np.random.random())


def test_a_process_has_one_thread_and_the_random_numbers_of_every_other() -> None:
    begin(is_placed=False)
    first = drawn()
    begin(is_placed=True)

    assert drawn() == first
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_whoever_says_how_many_threads_has_them(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "2")

    begin(is_placed=False)

    assert torch.get_num_threads() == 2


def test_a_process_that_was_placed_on_cores_has_the_threads_that_torch_finds() -> None:
    begin(is_placed=True)

    assert torch.get_num_threads() == 2


OF_TORCH = torch.get_num_threads()  # that it takes of itself
ARMS = """
import torch
def look_around(lab):
    return [torch.get_num_threads(), torch.rand(()).item()]
"""
BODY = """
found = {"run": look_around(lab), "arm": lab.arm("arm", look_around)()}
found["told"] = lab.arm("told", look_around, env={"OMP_NUM_THREADS": str(os.cpu_count())})()
found["placed"] = lab.arm("placed", look_around, prefix=["env"])()
import json
lab.text(json.dumps(found), title="found")
"""


@pytest.mark.slow
@pytest.mark.real_torch
def test_arms_begin_as_the_scenario_does(
    tuilab: Callable[..., "CompletedProcess[str]"], root: Path, tmp_path: Path
) -> None:
    tuilab("run", str(write_scenario(tmp_path, BODY, ARMS)), "--headless", "--quiet")

    summary = look(newest(root) or root).summary
    found = json.loads(next(text.text for text in summary.texts if text.title == "found"))
    assert [threads for threads, _ in found.values()] == [1, 1, OF_TORCH, OF_TORCH]
    assert len({number for _, number in found.values()}) == 1
