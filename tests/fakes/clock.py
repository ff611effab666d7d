"""A clock of supervisors that a test sets forward, so that a timeout of a minute costs no time."""

import os
from pathlib import Path

import pytest

from tests.engine import do_first

# How far the clock is ahead is the size of a file: it is set, and read, in one piece.
GO_BY = """
import os, sys, time
if {{"tuilab.engine.supervisor", "tuilab.engine.early_start"}} & {{*sys.orig_argv}}:
    time.monotonic = lambda right=time.monotonic: right() + os.stat({place!r}).st_size
"""


class Clock:
    """Seconds that pass at once for each supervisor that is started while it is there."""

    def __init__(self, place: Path) -> None:
        self._place = place
        place.touch()

    def put_forward(self, seconds: int) -> None:
        os.truncate(self._place, self._place.stat().st_size + seconds)

    def putting_forward(self, seconds: int) -> str:
        """Return a line for a scenario that sets the clock ahead; repeated runs set it only once."""
        return f"os.truncate({str(self._place)!r}, {seconds})\n"


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Have supervisors go by a clock of this test."""
    place = tmp_path / "ahead"
    do_first(tmp_path, monkeypatch, GO_BY.format(place=str(place)))
    return Clock(place)
