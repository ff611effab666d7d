"""How files are opened, read and replaced, where somebody else may have put something in their place.

Only regular files are read, and in bounded amounts. What we keep ourselves (settings, caches) is read with `read_small`, which
says in one way why it is of no use; whoever asks says what is done then. What is replaced is replaced at once.
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

_HIGH = 960  # most code that closes "every" descriptor stops at 256; what is opened gets the lowest free number


class Fault(Enum):
    """What can be the matter with a small file of ours."""

    ABSENT = auto()
    CLOSED = auto()  # no permission, or no regular file: a folder, a FIFO, a link
    LARGE = auto()  # more than we ever write
    BROKEN = auto()  # cut, garbled, or values of another kind
    FOREIGN = (
        auto()
    )  # written by a newer or an older tuilab, which reads and writes it in another way


class Unusable(Exception):
    """A small file of ours is of no use: `fault` says why to us, the text to a person."""

    def __init__(self, fault: Fault, why: str) -> None:
        super().__init__(why)
        self.fault = fault


def open_regular(path: str | os.PathLike[str], *, may_be_link: bool = False) -> int:
    """Open a regular file for reading, and nothing else: no FIFO that blocks, no link that leads away."""
    return open_seen(path, may_be_link=may_be_link)[0]


def open_seen(
    path: str | os.PathLike[str], *, may_be_link: bool = False
) -> tuple[int, os.stat_result]:
    """Open a regular file in the same way, and return also what it is.

    It is looked at first: to open a FIFO lets who writes there go on, and to open a device may do something.
    """
    mode = os.stat(path, follow_symlinks=may_be_link).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise OSError(errno.EINVAL, "it is not a regular file")
    fd = os.open(
        path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if may_be_link else os.O_NOFOLLOW)
    )
    seen = os.fstat(fd)
    if not stat.S_ISREG(seen.st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return fd, seen


def read_regular(
    path: str | os.PathLike[str], limit: int, *, may_be_link: bool = False, is_ours: bool = False
) -> bytes:
    """Return what is in a regular file of at most `limit` bytes; with `is_ours` only of one that no other can have written."""
    fd, seen = open_seen(path, may_be_link=may_be_link)
    with open(fd, "rb") as file:
        if is_ours and not can_only_be_ours(seen):
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
    """Return what a small file of ours says, or raise Unusable; `decode` raises ValueError for what we never wrote."""
    try:
        return decode(read_regular(path, limit, may_be_link=may_be_link))
    except OSError as problem:
        fault = {errno.ENOENT: Fault.ABSENT, errno.EFBIG: Fault.LARGE}.get(
            problem.errno or 0, Fault.CLOSED
        )
        raise Unusable(fault, problem.strerror or str(problem)) from problem
    except (ValueError, RecursionError) as problem:
        raise Unusable(Fault.BROKEN, str(problem)) from problem


def json_as(kind: type[T]) -> Callable[[bytes], T]:
    """Return what decodes JSON into values of this kind; for who may take the time to load msgspec."""
    import msgspec

    def decode(data: bytes) -> T:
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.MsgspecError as problem:  # no ValueError in older ones
            raise ValueError(str(problem)) from problem

    return decode


def sealed(body: bytes) -> bytes:
    """Return what a cache holds, behind its checksum, as in a journal: crc32-hex SP body."""
    return b"%08x %b" % (crc32(body), body)


def unsealed(data: bytes) -> bytes:
    """Return what was sealed; ValueError where it is damaged."""
    if int(data[:8], 16) != crc32(data[9:]):
        raise ValueError("it is damaged")
    return data[9:]


def replace(path: str | os.PathLike[str], data: bytes | Iterable[bytes], mode: int = 0o600) -> None:
    """Put a new file in the place of whatever has that name, at once: who reads sees the old one or the new one, whole.

    A link is replaced, never followed: what it leads to may be anybody's. Who means the file behind it gives that one's path.
    """
    with _unfinished(path, mode) as (file, hidden):
        file.writelines([data] if isinstance(data, bytes) else data)
        _name(file, hidden)
        os.replace(hidden, path)


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file where none is; it is there when all of it is, and nothing is there until then."""
    _want_none(path)
    with _unfinished(path, 0o600) as (file, hidden):
        yield file
        _name(file, path)
        if os.path.lexists(hidden):
            _want_none(path)
            os.rename(hidden, path)


def _want_none(path: str | os.PathLike[str]) -> None:
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


@contextmanager
def _unfinished(path: str | os.PathLike[str], mode: int) -> Iterator[tuple[BinaryIO, str]]:
    """Give a new file beside a path to write into, and a hidden name; what has that in the end is removed.

    The file has no name yet, so that nothing is left of it however we end; where that cannot be, it has the hidden one.
    """
    folder = os.path.dirname(path) or "."
    hidden = os.path.join(folder, f".tuilab-{os.urandom(8).hex()}")  # nobody can have put one there
    try:
        os.stat("/proc/self/fd")  # which names a file that has none
        fd = os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode)
    except OSError:
        fd = os.open(
            hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode
        )
    try:
        with open(fd, "wb") as file:
            yield file, hidden
    finally:
        with suppress(OSError):
            os.unlink(hidden)


def _name(file: BinaryIO, path: str | os.PathLike[str]) -> None:
    """Give a file a name if it has none, when all of it is written."""
    file.flush()
    fd = file.fileno()
    if os.fstat(fd).st_nlink == 0:
        os.link(
            f"/proc/self/fd/{fd}", path, src_dir_fd=fd
        )  # with the descriptor of anything: else the link is not followed


@contextmanager
def locked(folder: str | os.PathLike[str], patience_s: float) -> Iterator[bool]:
    """Have the lock of a folder in a `with` block, if nobody has it for so long; a disk without locks is taken to be ours."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _is_locked(fd, time.monotonic() + patience_s)
    finally:
        os.close(fd)


def _is_locked(fd: int, until: float) -> bool:
    import fcntl  # `tuilab list` locks nothing

    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        except OSError:
            return True
        else:
            return True


def can_only_be_ours(seen: os.stat_result) -> bool:
    """Return whether nobody but this user (and root) can have written a file, or put one into a folder."""
    return seen.st_uid == os.geteuid() and not seen.st_mode & 0o022


def identity(seen: os.stat_result) -> tuple[int, int]:
    """Return what tells a file from every other that is open."""
    return seen.st_dev, seen.st_ino


def set_apart(fd: int, least: int = _HIGH) -> int:
    """Move a descriptor to a high number, which code that closes or opens others does not meet; where that fails it stays."""
    import fcntl
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        apart = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, min(least, soft // 2 + least - _HIGH))
    except OSError:  # few may be open
        return fd
    os.close(fd)
    return apart
