"""Make processes that cannot be killed until a test lets them go: they use a stuck file."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SERVER = Path(__file__).with_name("stuck_file.py")


class StuckFile:
    """A file that holds the processes that open it, or that close it, until the test lets them go."""

    def __init__(self, place: Path, when: str) -> None:
        place.touch()
        self._server = subprocess.Popen(
            [sys.executable, "-P", SERVER, place, when],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.path = self._say()

    def wait_until_held(self) -> None:
        """Wait until a process is held."""
        assert self._say() == "held"

    def let_go(self) -> None:
        self._server.communicate()

    def _say(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Callable[[str], StuckFile]]:
    """Return a function that serves a file, which holds a process when it is `opened` or `closed`.

    All processes are let go after the test.
    """
    files: list[StuckFile] = []

    def serve(when: str) -> StuckFile:
        file = StuckFile(tmp_path / f"held-when-{when}", when)
        files.append(file)
        if not file.path:
            pytest.skip("a process that cannot be killed needs /dev/fuse and user namespaces")
        return file

    yield serve
    for file in files:
        file.let_go()
