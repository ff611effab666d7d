"""A kernel that lists no children: builds `no_children.c`, which is preloaded."""

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def no_children(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Build the library once; return what stands before a command line that shall run with it."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc: the files that list children cannot be hidden")
    library = tmp_path_factory.mktemp("no-children") / "no_children.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
            library,
            source,
            "-ldl",
        ],
        check=True,
    )
    return ["env", f"LD_PRELOAD={library}"]
