"""A kernel that lists no children: builds `no_children.c`, which is preloaded."""

from pathlib import Path

import pytest

from tests.fakes.compiled import compile_library


@pytest.fixture(scope="session")
def no_children(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Build the library once; return what stands before a command line that shall run with it."""
    library = tmp_path_factory.mktemp("no-children") / "no_children.so"
    source = Path(__file__).with_suffix(".c")
    lack = "the files that list children cannot be hidden"
    compile_library(source, library, "-ldl", lack=lack)
    return ["env", f"LD_PRELOAD={library}"]
