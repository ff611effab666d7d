"""How many records a worker holds back while their values are on a GPU, told where a kill cannot take it away.

The worker keeps the count in a file of the run. At its end it says itself what is missing, and removes the file; of one that
was killed the file is left, and the supervisor counts what it says.
"""

import contextlib
import os
from pathlib import Path

from tuilab.storage.files import move_to_high_fd, open_regular

_PREFIX = "unwritten-"
_MOST = 10**12  # more than any run writes, and less than a record of the loss may say
_PLACE = 7_310_911_027  # where no other file stands that gets the number of this one


class Unwritten:
    """The count of one worker, which is told when it has changed; where the disk does not take it, there is none."""

    def __init__(self, run_dir: Path, writer: str) -> None:
        self.count = 0
        self._told = 0
        self._fd = -1
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(OSError):
            self._fd = move_to_high_fd(os.open(run_dir / f"{_PREFIX}{writer}", flags, 0o600))
            os.lseek(self._fd, _PLACE, os.SEEK_SET)

    def tell(self) -> None:
        """Write the count down where it is another one than was told."""
        if self.count == self._told:
            return
        self._told = self.count
        with contextlib.suppress(OSError):
            if (
                os.lseek(self._fd, 0, os.SEEK_CUR) == _PLACE
            ):  # else the scenario closed it, and opened another
                os.pwrite(self._fd, b"%020d" % self.count, 0)

    def disown(self) -> None:
        """Leave the file alone: the child of a fork counts nothing."""
        self._fd = -1


def forget(run_dir: Path, writer: str) -> None:
    """Remove the count of a worker that has told what is missing."""
    with contextlib.suppress(OSError):
        os.unlink(run_dir / f"{_PREFIX}{writer}")


def take_count(run_dir: Path, writer: str) -> int:
    """Return what a worker and its ranks held back when they were killed, and remove their counts."""
    found = {
        name: count
        for name, count in left(run_dir).items()
        if name == writer or name.startswith(f"{writer}-rank-")
    }
    for name in found:
        forget(run_dir, name)
    return sum(found.values())


def left(run_dir: Path) -> dict[str, int]:
    """Return by their names what the workers of a run hold back, or held back when they were killed.

    Nothing where no file can be opened any more: a run comes to its end all the same.
    """
    with contextlib.suppress(OSError):
        return {
            path.name.removeprefix(_PREFIX): _count(path)
            for path in sorted(run_dir.glob(f"{_PREFIX}*"))
        }
    return {}


def _count(path: Path) -> int:
    """Return what a file says; of one that says nothing of use that something is missing, as it would not be there else."""
    try:
        with open(open_regular(path), "rb") as file:
            return min(max(int(file.read(20) or b"0"), 0), _MOST)
    except (OSError, ValueError):
        return 1
