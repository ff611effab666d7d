"""Scenarios compute with tensors: what their tests start loads the real torch."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("real_torch")


@pytest.fixture(autouse=True)
def sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that wait for each other sleep: tests side by side share the cores, and spinning takes them from who works."""
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
