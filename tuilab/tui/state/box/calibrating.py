"""A calibration that was started from the screens: the command itself, which goes on and keeps what it found without them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tuilab.judging.calibration import USUAL_MINUTES
from tuilab.text import show

_LAST = 4096  # bytes of what it said


class Calibrating:
    """One of this box (`cpu`), or of a GPU (`cuda`)."""

    def __init__(self, device: str, root: Path) -> None:
        self.device = device
        self.whole_s = 60 * USUAL_MINUTES[device]
        self._was_cancelled = False
        self._began_s = time.monotonic()
        self._said = os.memfd_create("calibration")  # a pipe would end it when the screens close
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tuilab", "calibrate", "--device", device, "--root", str(root)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            env=dict(os.environ),  # and not what C has meanwhile: see arrays.py
            start_new_session=True,  # Ctrl-C at the terminal is not meant for it
        )

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_s

    @property
    def why_not(self) -> str:
        """Why it came to nothing, in its own words; nothing while it goes on, and where it did."""
        if not self._process.poll():
            return ""
        if self._was_cancelled:
            return "you stopped it"
        size = os.fstat(self._said).st_size
        lines = os.pread(self._said, _LAST, max(size - _LAST, 0)).decode(errors="replace").strip().splitlines()
        return show(lines[-1], 300).removeprefix("tuilab: ") if lines else f"it exited with code {self._process.returncode}"

    def cancel(self) -> None:
        """End it in order, as ctrl-c does: its run is stopped, and nothing is kept."""
        self._was_cancelled = True
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGINT)
