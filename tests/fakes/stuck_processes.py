"""Processes that cannot be killed, for as long as a test wants: they use a file that `stuck_file.py` serves."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SERVER = Path(__file__).with_name("stuck_file.py")


class StuckFile:
    """A file that holds who opens it (or who closes it, as a process that ends does) until it lets go."""

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
        """Return as soon as somebody is held."""
        assert self._say() == "held"

    def let_go(self) -> None:
        self._server.communicate()

    def _say(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Callable[[str], StuckFile]]:
    """Serve a file that holds whoever has `opened` it, or `closed` it; all are let go at the end."""
    served: list[StuckFile] = []

    def serve(when: str) -> StuckFile:
        served.append(StuckFile(tmp_path / f"held-when-{when}", when))
        if not served[-1].path:
            pytest.skip(
                "no process that cannot be killed: that takes /dev/fuse and user namespaces"
            )
        return served[-1]

    yield serve
    for one in served:
        one.let_go()
