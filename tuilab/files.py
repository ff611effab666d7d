"""Opens files that somebody else may have put there: regular ones only, read in bounded amounts; keeps ours apart."""

import errno
import fcntl
import os
import resource
import stat

_HIGH = 960  # most code that closes "every" descriptor stops at 256; what is opened gets the lowest free number


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


def identity(seen: os.stat_result) -> tuple[int, int]:
    """Return what tells a file from every other that is open."""
    return seen.st_dev, seen.st_ino


def set_apart(fd: int) -> int:
    """Move a descriptor to a high number, which code that closes or opens others does not meet; where that fails it stays."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        apart = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, min(_HIGH, soft // 2))
    except OSError:  # few may be open
        return fd
    os.close(fd)
    return apart
