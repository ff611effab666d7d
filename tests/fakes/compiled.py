"""Libraries in C that tests put below a process."""

import shutil
import subprocess
from pathlib import Path

import pytest


def compile_library(source: Path, library: Path, *options: str, lack: str) -> None:
    """Compile a shared library. Without a compiler, skip the test; `lack` says what it lacks."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip(f"no gcc: {lack}")
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", library, source, *options], check=True)
