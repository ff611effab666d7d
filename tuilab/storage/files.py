"""Open, read and replace files safely, even if another user put something else in their place.

Only regular files are read, and never more than a limit. tuilab's own small files (settings,
caches) are read with `read_small`. It reports with one exception why a file is unusable, and the
caller decides what follows. A file is replaced in one step.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from typing import BinaryIO, TypeVar
from zlib import crc32

T = TypeVar("T")

# Most code that closes "every" descriptor stops at 256, and a new one gets the lowest free number.
_HIGH = 960


class Fault(Enum):
    """Why a small file of tuilab cannot be used."""

    ABSENT = auto()
    CLOSED = auto()  # no permission, or no regular file: a folder, a FIFO, a link
    LARGE = auto()  # larger than any that tuilab writes
    BROKEN = auto()  # cut, garbled, or with values of another type
    FOREIGN = auto()  # written by a newer or older tuilab in another format


class Unusable(Exception):
    """A small file of tuilab cannot be used: `fault` is for code, the text for people."""

    def __init__(self, fault: Fault, why: str) -> None:
        super().__init__(why)
        self.fault = fault


def open_regular(path: str | os.PathLike[str], *, may_be_link: bool = False) -> int:
    """Open a regular file for reading, and nothing else: no FIFO that blocks, and no link.

    Returns its descriptor, which the caller closes. Raises OSError for everything else.
    """
    return open_with_status(path, may_be_link=may_be_link)[0]


def open_with_status(
    path: str | os.PathLike[str], *, may_be_link: bool = False
) -> tuple[int, os.stat_result]:
    """Open a regular file for reading, and return its descriptor and status, or raise OSError.

    The status is read first: to open a FIFO unblocks its writer, and to open a device may start
    something.
    """
    mode = os.stat(path, follow_symlinks=may_be_link).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise OSError(errno.EINVAL, "it is not a regular file")
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if not may_be_link:
        flags |= os.O_NOFOLLOW
    fd = os.open(path, flags)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):  # it was replaced meanwhile
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return fd, status


def read_regular(
    path: str | os.PathLike[str], limit: int, *, may_be_link: bool = False, is_ours: bool = False
) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; raise OSError otherwise.

    With `is_ours`, a file that another user may have written is an OSError as well.
    """
    fd, status = open_with_status(path, may_be_link=may_be_link)
    with open(fd, "rb") as file:
        if is_ours and not can_only_be_ours(status):
            raise OSError(errno.EPERM, "another user may have written it")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit // 1024} KiB")
    return data


def read_small(
    path: str | os.PathLike[str],
    decode: Callable[[bytes], T],
    limit: int,
    *,
    may_be_link: bool = False,
) -> T:
    """Return the decoded content of a small file of tuilab, or raise Unusable.

    `decode` raises ValueError for content that tuilab never writes. Its other errors pass through.
    """
    try:
        return decode(read_regular(path, limit, may_be_link=may_be_link))
    except OSError as problem:
        fault = Fault.CLOSED
        if problem.errno == errno.ENOENT:
            fault = Fault.ABSENT
        elif problem.errno == errno.EFBIG:
            fault = Fault.LARGE
        raise Unusable(fault, problem.strerror or str(problem)) from problem
    except (ValueError, RecursionError) as problem:
        raise Unusable(Fault.BROKEN, str(problem)) from problem


def json_as(kind: type[T]) -> Callable[[bytes], T]:
    """Return a function that decodes JSON into values of this type, or raises ValueError.

    It loads msgspec, which takes too long for `tuilab list`.
    """
    import msgspec

    def decode(data: bytes) -> T:
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.MsgspecError as problem:  # in older versions, it is no ValueError
            raise ValueError(str(problem)) from problem

    return decode


def sealed(body: bytes) -> bytes:
    """Return the content of a cache with its checksum, as in a journal: crc32-hex SP body."""
    return b"%08x %b" % (crc32(body), body)


def unsealed(data: bytes) -> bytes:
    """Return the content that was sealed; ValueError if it is damaged."""
    if int(data[:8], 16) != crc32(data[9:]):
        raise ValueError("it is damaged")
    return data[9:]


def replace(path: str | os.PathLike[str], data: bytes | Iterable[bytes], mode: int = 0o600) -> None:
    """Replace a file in one step: readers see either the whole old file or the whole new one.

    A link is replaced, never followed: its target may belong to another user. To replace the
    target, give its path.
    """
    chunks = [data] if isinstance(data, bytes) else data
    with _unfinished(path, mode) as (file, hidden_path):
        file.writelines(chunks)
        _finish(file, hidden_path)
        os.replace(hidden_path, path)


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file that does not exist yet; it appears when it is complete.

    If the block fails, nothing appears. Raises FileExistsError if there is such a file.
    """
    _refuse_existing(path)
    with _unfinished(path, 0o600) as (file, hidden_path):
        yield file
        _finish(file, path)
        # Where a file cannot be without a name, it still has the hidden one.
        if os.path.lexists(hidden_path):
            _give_name(hidden_path, path)


def _give_name(hidden_path: str, path: str | os.PathLike[str]) -> None:
    """Give a complete file a second name. Raise FileExistsError if another file has it."""
    try:
        os.link(hidden_path, path)
    except FileExistsError:
        raise
    except OSError:  # this file system has no hard links
        _refuse_existing(path)
        os.rename(hidden_path, path)


def _refuse_existing(path: str | os.PathLike[str]) -> None:
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


@contextmanager
def _unfinished(path: str | os.PathLike[str], mode: int) -> Iterator[tuple[BinaryIO, str]]:
    """Yield a new file in the folder of a path, and a hidden path, which is removed at the end.

    The file has no name yet, so that it disappears even if the process is killed. If the file
    system cannot do that, the file has the hidden path.
    """
    folder = os.path.dirname(path) or "."
    hidden_path = os.path.join(folder, f".tuilab-{os.urandom(8).hex()}")  # cannot be guessed
    try:
        os.stat("/proc/self/fd")  # needed to give the file a name later
        fd = os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode)
    except OSError:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(hidden_path, flags, mode)
    try:
        with open(fd, "wb") as file:
            yield file, hidden_path
    finally:
        with suppress(OSError):
            os.unlink(hidden_path)


def _finish(file: BinaryIO, path: str | os.PathLike[str]) -> None:
    """Give a file, now that it is complete, this name if it has none."""
    file.flush()
    fd = file.fileno()
    if os.fstat(fd).st_nlink == 0:
        # without a descriptor as `src_dir_fd`, Python would not follow the link in /proc
        os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd)


@contextmanager
def locked(folder: str | os.PathLike[str], patience_s: float) -> Iterator[bool]:
    """Hold the lock of a folder in a `with` block; yield whether it was free within this time.

    On a file system without locks, it counts as free.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _lock(fd, time.monotonic() + patience_s)
    finally:
        os.close(fd)


def _lock(fd: int, deadline: float) -> bool:
    """Take the lock of an open folder, and return True; return False if it is not free in time.

    On a file system without locks, it counts as taken. The lock ends when `fd` is closed.
    """
    import fcntl  # imported here: `tuilab list` locks nothing

    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        except OSError:  # this file system has no locks
            return True


def can_only_be_ours(status: os.stat_result) -> bool:
    """Return whether only this user (and root) can have written a file or filled a folder."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def identity(status: os.stat_result) -> tuple[int, int]:
    """Return the numbers that identify a file among all that exist."""
    return status.st_dev, status.st_ino


def move_to_high_fd(fd: int, lowest: int = _HIGH) -> int:
    """Move a descriptor to a high number, and return it.

    Code that closes or opens other descriptors does not meet it there. If that fails, it stays.
    """
    import fcntl
    import resource

    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        high_fd = fcntl.fcntl(
            fd, fcntl.F_DUPFD_CLOEXEC, min(lowest, soft_limit // 2 + lowest - _HIGH)
        )
    except OSError:  # the limit of open files is too low
        return fd
    os.close(fd)
    return high_fd
