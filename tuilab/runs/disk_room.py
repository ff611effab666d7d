"""Whether the disk of a run that goes on has room for what it records, and what is told where it has none."""

import os
import time
from pathlib import Path
from threading import Thread

from tuilab.record.live_run import Watch
from tuilab.runs.command_line import hint
from tuilab.text.display import show

_RECORD_BYTES = (
    4096  # as much as a worker writes at once, mostly; where there is less, some of it is lost
)
_PERIOD_S = 1.0


class DiskRoom:
    """One for a folder. It asks in a thread that nobody waits for: a disk that hangs answers nobody; the last answer counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_full = self._is_asking = False
        self._asked_at = -_PERIOD_S

    def is_full(self) -> bool:
        """Say whether there was no room when the disk answered last, and ask it again, a moment after it was asked."""
        now_s = time.monotonic()
        if not self._is_asking and now_s - self._asked_at >= _PERIOD_S:
            self._is_asking, self._asked_at = True, now_s
            try:
                Thread(target=self._ask, daemon=True).start()
            except RuntimeError:  # there can be no thread now: the next look asks again
                self._is_asking = False
        return self._is_full

    def warning(self, watch: Watch) -> str:
        """Return what is told while a run goes on here, and its disk is full."""
        if watch.summary.is_over or not self.is_full() or watch.supervisor_presence != "alive":
            return ""
        return describe_room(watch.run_dir.parent)

    def _ask(self) -> None:
        self._is_full = is_full(self._folder)
        self._is_asking = False


def is_full(folder: Path) -> bool:
    """Say whether whoever owns a folder has no room in it; of a disk that does not tell, that it is not so."""
    try:
        disk, owner = os.statvfs(folder), os.stat(folder).st_uid
    except OSError:
        return False
    blocks = disk.f_bavail if owner else disk.f_bfree  # some are kept for root
    return disk.f_blocks > 0 and blocks * disk.f_frsize < _RECORD_BYTES


def describe_room(root: Path) -> str:
    """Return that there is no room in a folder of runs, what comes of it, and the next step."""
    step = hint(root, "rm", "--older-than", "30d")
    return f"no room in {show(root)}, so records of runs are lost; free some space, for example: {step}"
