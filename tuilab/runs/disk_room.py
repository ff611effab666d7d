"""Check whether the disk of a running run has room for its records, and describe a full disk."""

import os
import time
from pathlib import Path
from threading import Thread

from tuilab.record.live_run import Watch
from tuilab.runs.command_line import hint
from tuilab.text.display import show

# A worker mostly writes this much at once. With less room, some of its records are lost.
_RECORD_BYTES = 4096
_PERIOD_S = 1.0


class DiskRoom:
    """Checks the disk of a folder, again and again.

    Each check runs in a thread that is not waited for, because a disk may hang. The last answer
    counts.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare checks of the disk of a folder; the first call of `is_full` starts one."""
        self._folder = folder
        self._is_full = False
        self._is_checking = False
        self._checked_at_s = -_PERIOD_S

    def is_full(self) -> bool:
        """Return whether the disk was full at the last check, and start a check if one is due."""
        now_s = time.monotonic()
        if not self._is_checking and now_s - self._checked_at_s >= _PERIOD_S:
            self._is_checking = True
            self._checked_at_s = now_s
            try:
                Thread(target=self._check, daemon=True).start()
            except RuntimeError:  # no thread can be started now; a later call tries again
                self._is_checking = False
        return self._is_full

    def warning(self, watch: Watch) -> str:
        """Return a warning if a run is running here and its disk is full; else an empty string."""
        if watch.summary.is_over or not self.is_full() or watch.supervisor_presence != "alive":
            return ""
        return describe_room(watch.run_dir.parent)

    def _check(self) -> None:
        self._is_full = is_full(self._folder)
        self._is_checking = False


def is_full(folder: Path) -> bool:
    """Return whether the owner of a folder has no room in it; False if the disk does not say."""
    try:
        disk = os.statvfs(folder)
        owner = os.stat(folder).st_uid
    except OSError:
        return False
    blocks = disk.f_bavail if owner else disk.f_bfree  # root, whose id is 0, has reserved blocks
    return disk.f_blocks > 0 and blocks * disk.f_frsize < _RECORD_BYTES


def describe_room(root: Path) -> str:
    """Return that the disk of a folder of runs is full, with the consequence and the next step."""
    step = hint(root, "rm", "--older-than", "30d")
    return (
        f"no room in {show(root)}, so records of runs are lost; "
        f"free some space, for example: {step}"
    )
