"""What many tests use: the real command line in a folder of runs of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):  # our processes start as they do on a user's machine
    os.environ.pop(name, None)

TUILAB = str(Path(sys.executable).with_name("tuilab"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of runs for one test."""
    return tmp_path / "runs"


@pytest.fixture
def tuilab(root: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `tuilab ...` as a user does, with files of its own; returns what it printed and its exit code."""

    def run(*words: str, timeout: float = 100, **more: Any) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TUILAB_ROOT": str(root), "XDG_CACHE_HOME": str(tmp_path / "cache"), **more.pop("env", {})}
        return subprocess.run(
            [TUILAB, *words], capture_output=True, text=True, timeout=timeout, env=environment, stdin=subprocess.DEVNULL, **more
        )

    return run


@pytest.fixture
def result(tuilab: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., dict[str, Any]]:
    """Run one scenario with `--quick --json` and return its run from the document; `verdicts` has those of claims by key."""

    def run(name: str, *words: str) -> dict[str, Any]:
        done = tuilab("run", name, "--headless", "--quick", "--json", "--quiet", *words)
        assert done.stdout, done.stderr
        (only,) = json.loads(done.stdout)["runs"]
        only["exit_code"] = done.returncode
        only["verdicts"] = {claim["key"] or claim["text"]: claim["verdict"] for claim in only["claims"]}
        return dict(only)

    return run
