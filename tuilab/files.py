"""Opens files that somebody else may have put there: regular ones only, read in bounded amounts."""

import errno
import os
import stat


def open_regular(path: str | os.PathLike[str], *, may_be_link: bool = False) -> int:
    """Open a regular file for reading, and nothing else: no FIFO that blocks, no link that leads away."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if may_be_link else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return fd


def read_regular(path: str | os.PathLike[str], limit: int, *, may_be_link: bool = False) -> bytes:
    """Return what is in a regular file of at most `limit` bytes."""
    with open(open_regular(path, may_be_link=may_be_link), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit // 1024} KiB")
    return data
