"""Scenarios compute with tensors: what their tests start loads the real torch."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.conftest import TUILAB, run_of
from tests.scenarios.lessons import is_without_arms
from tests.warm_process import WarmTuilab
from tuilab.catalogue import catalog

LIMIT_S = 400  # of a run, also on a busy machine: a compiler alone may take a minute there
Result = Callable[..., dict[str, Any]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker("real_torch")
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(LIMIT_S + 20))


@pytest.fixture(autouse=True)
def sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that wait for each other sleep: tests side by side share the cores, and spinning takes them from who works."""
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")


@pytest.fixture(scope="session")
def waiting(environment: None) -> Iterator[WarmTuilab]:
    """Starts with the first call, and so with the real torch."""
    loaded = WarmTuilab(TUILAB, "tests.scenarios.lessons")
    yield loaded
    loaded.end()


@pytest.fixture
def as_it_comes(
    tuilab: Callable[..., "CompletedProcess[str]"], root: Path, waiting: WarmTuilab
) -> Result:
    """Run a lesson with its defaults: as a user does where it starts something, else in such a fork. All exact claims hold.

    What claims times is not repeated: the repeats that it takes by itself would find out nothing more.
    """
    paths = {found.id: found.path for found in catalog.load()}

    def run(name: str) -> dict[str, Any]:
        if not is_without_arms(paths[name], ranks=True):
            done = tuilab(
                "run", name, "--headless", "--json", "--quiet", "--repeat", "1", timeout=LIMIT_S
            )
        else:
            done = waiting.run(
                ("run", name), {**os.environ, "TUILAB_ROOT": str(root)}, Path.cwd(), LIMIT_S
            )
        found = run_of(done)
        assert found["state"] == "succeeded", found["reason"]
        undecided = [claim["text"] for claim in found["claims"] if claim["verdict"] is None]
        refuted = [
            claim["text"]
            for claim in found["claims"]
            if claim["measured"] and claim["verdict"] == "REFUTED"
        ]
        assert (undecided, refuted) == ([], [])
        return found

    return run


@pytest.fixture
def result(result: Result, root: Path, waiting: WarmTuilab) -> Result:
    """Run a lesson with `--quick` in a fork of a process that has loaded torch; one that starts arms as a user does."""
    paths = {found.id: found.path for found in catalog.load()}

    def run(name: str, *words: str) -> dict[str, Any]:
        if name not in paths or not is_without_arms(paths[name]):
            return result(name, *words)
        done = waiting.run(
            ("run", name, "--quick", *words),
            {**os.environ, "TUILAB_ROOT": str(root)},
            Path.cwd(),
            LIMIT_S,
        )
        return run_of(done)

    return run
