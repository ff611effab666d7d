"""The site that each fault is injected in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.oracle import Site, make_site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A folder of runs, a command line in it and a bystander; whatever is left at the end is killed."""
    made = make_site(tmp_path)
    yield made
    made.end()
