"""Counts the records that a worker holds back while their values are on a GPU, safe from a kill.

The worker keeps the count in a file of the run. At its end it reports itself how many are missing,
and removes the file. If it is killed, the file stays, and the supervisor counts its records.
"""

import contextlib
import os
from pathlib import Path

from tuilab.storage.files import move_to_high_fd, open_regular

_PREFIX = "unwritten-"
_MOST = 10**12  # more than any run writes, and a number that fits a record
_OUR_POSITION = 7_310_911_027  # a position that another file with our descriptor does not have


class UnwrittenCount:
    """The count of one worker, which is written when it has changed, if the disk takes it."""

    def __init__(self, run_dir: Path, writer: str) -> None:
        """Create the file of the count; without it, the count is lost if the worker is killed."""
        self.count = 0
        self._written = 0
        self._fd = -1
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(OSError):
            self._fd = move_to_high_fd(os.open(run_dir / f"{_PREFIX}{writer}", flags, 0o600))
            # By this position, `tell` knows whether the descriptor is still our file.
            os.lseek(self._fd, _OUR_POSITION, os.SEEK_SET)

    def tell(self) -> None:
        """Write the count into its file if it has changed."""
        if self.count == self._written:
            return
        self._written = self.count
        with contextlib.suppress(OSError):
            is_our_file = os.lseek(self._fd, 0, os.SEEK_CUR) == _OUR_POSITION
            if is_our_file:  # else the scenario closed ours and opened another
                os.pwrite(self._fd, b"%020d" % self.count, 0)

    def disown(self) -> None:
        """Forget the file: the child of a fork counts nothing."""
        self._fd = -1


def forget(run_dir: Path, writer: str) -> None:
    """Remove the count of a worker that has reported its missing records."""
    with contextlib.suppress(OSError):
        os.unlink(run_dir / f"{_PREFIX}{writer}")


def take_count(run_dir: Path, writer: str) -> int:
    """Return how many records a killed worker and its ranks held back, and remove their counts."""
    total = 0
    for name, count in left(run_dir).items():
        if name == writer or name.startswith(f"{writer}-rank-"):
            total += count
            forget(run_dir, name)
    return total


def left(run_dir: Path) -> dict[str, int]:
    """Return, by worker, how many records are held back, or were when the worker was killed.

    If no file can be opened any more, the result is empty: the run ends all the same.
    """
    with contextlib.suppress(OSError):
        paths = sorted(run_dir.glob(f"{_PREFIX}*"))
        return {path.name.removeprefix(_PREFIX): _count(path) for path in paths}
    return {}


def _count(path: Path) -> int:
    """Return the count in a file; 1 if it is not valid: the file means that records are missing."""
    try:
        with open(open_regular(path), "rb") as file:
            return min(max(int(file.read(20) or b"0"), 0), _MOST)
    except (OSError, ValueError):
        return 1
