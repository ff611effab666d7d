"""Check whether the disk of a running run has room for its records, and describe a full disk."""

import os
import time
from collections import deque
from pathlib import Path
from threading import Thread

from tuilab.record.live_run import Watch
from tuilab.runs.command_line import hint
from tuilab.text.display import show
from tuilab.text.words import size

# A worker mostly writes this much at once. With less room, some of its records are lost.
_RECORD_BYTES = 4096
_PERIOD_S = 1.0
_GROWTH_PERIOD_S = 5.0  # between two readings of the size of a record
_GROWTH_WINDOW_S = 300.0
_GROWTH_MIN_S = 60.0  # a run writes more at its beginning
_FAST = 100 * 1024**2  # bytes an hour
_HOURS = 24  # a disk that is full earlier is worth a warning


class DiskRoom:
    """Checks the disk of a folder, again and again.

    Each check runs in a thread that is not waited for, because a disk may hang. The last answer
    counts.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare checks of the disk of a folder; the first call of `is_full` starts one."""
        self._folder = folder
        self.free_bytes: int | None = None  # at the last check; None if the disk did not say
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
        return _is_too_little(self.free_bytes)

    def warning(self, watch: Watch) -> str:
        """Return a warning if a run is running here and its disk is full; else an empty string."""
        if watch.summary.is_over or not self.is_full() or watch.supervisor_presence != "alive":
            return ""
        return describe_room(watch.run_dir.parent)

    def _check(self) -> None:
        self.free_bytes = free_bytes(self._folder)
        self._is_checking = False


class RunGrowth:
    """Knows how much a running run writes in an hour, from its last minutes."""

    def __init__(self) -> None:
        # The time and the size of the record at the readings of the last minutes.
        self._readings: deque[tuple[float, int]] = deque()

    def read(self, now_s: float, size_bytes: int) -> None:
        """Take the present size of the record."""
        if self._readings and now_s - self._readings[-1][0] < _GROWTH_PERIOD_S:
            return
        self._readings.append((now_s, size_bytes))
        while now_s - self._readings[0][0] > _GROWTH_WINDOW_S:
            self._readings.popleft()

    def bytes_per_hour(self) -> float:
        """Return how much is written in an hour; 0 in the first minute."""
        if not self._readings:
            return 0.0
        first_s, first_bytes = self._readings[0]
        last_s, last_bytes = self._readings[-1]
        if last_s - first_s < _GROWTH_MIN_S:
            return 0.0
        return max(last_bytes - first_bytes, 0) / (last_s - first_s) * 3600

    def warning(self, free: int | None) -> str:
        """Return a warning if the record grows fast, or if the disk is full within a day.

        `free` is the room on the disk, in bytes, or None if that is unknown.
        """
        rate = self.bytes_per_hour()
        if not rate:
            return ""
        is_short = free is not None and free < _HOURS * rate
        if rate < _FAST and not is_short:
            return ""
        sentence = f"this run writes {size(rate)} an hour"
        if free is not None:
            sentence += f"; its disk has room for {_describe_hours(free / rate)}"
        return f"{sentence}. Log fewer values, or not in each step."


def _describe_hours(hours: float) -> str:
    if hours < 1:
        return "less than an hour"
    if hours < 2 * _HOURS:
        return f"{hours:.0f} hours"
    return f"{hours / 24:.0f} days"


def free_bytes(folder: Path) -> int | None:
    """Return the room for the owner of a folder; None if the disk does not say."""
    try:
        disk = os.statvfs(folder)
        owner = os.stat(folder).st_uid
    except OSError:
        return None
    if not disk.f_blocks:
        return None
    blocks = disk.f_bavail if owner else disk.f_bfree  # root, whose id is 0, has reserved blocks
    return blocks * disk.f_frsize


def is_full(folder: Path) -> bool:
    """Return whether the owner of a folder has no room in it; False if the disk does not say."""
    return _is_too_little(free_bytes(folder))


def _is_too_little(free: int | None) -> bool:
    return free is not None and free < _RECORD_BYTES


def describe_room(root: Path) -> str:
    """Return that the disk of a folder of runs is full, with the consequence and the next step."""
    step = hint(root, "rm", "--older-than", "30d")
    return (
        f"no room in {show(root)}, so records of runs are lost; "
        f"free some space, for example: {step}"
    )
