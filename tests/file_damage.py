"""Replace a small file by garbage, by something that is not a file, or by an unreadable file."""

import ctypes
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GARBAGE = {
    "empty": b"",
    "noise": bytes(range(256)) * 9,
    "zeros": bytes(4096),
    "not UTF-8": b'{"a": "\xff"}',
    "null": b"null",
    "number": b"3",
    "words": b'"x"',
    "list": b"[1, [2], {}]",
    "other fields": b'{"a": 1, "b": [null]}',
    "deep": b"[" * 60_000,
    "long number": b'{"a": ' + b"9" * 5000 + b"}",
}
KINDS_OF_DAMAGE = [*GARBAGE, "cut", "folder", "fifo", "device", "socket", "huge", "sealed"]
# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: with these, root can read everything.
_OVERRIDES = 1 << 1 | 1 << 2
_VERSION = 0x20080522  # of the structures of capget and capset


def can_make_devices() -> bool:
    """Whether a device can be made here. That needs root, and a system that permits it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.mknod(f"{folder}/node", stat.S_IFCHR, os.makedev(1, 5))
        except OSError:
            return False
    return True


def damage(path: Path, kind: str) -> None:
    """Put something else in the place of a small file: one of `KINDS_OF_DAMAGE`, or `node`."""
    content = path.read_bytes()
    path.unlink()
    match kind:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "socket":
            os.mknod(path, stat.S_IFSOCK | 0o600)
        case "node":
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # zeros without an end
        case "huge":
            path.touch()
            os.truncate(path, 1 << 40)
        case "sealed":
            path.write_bytes(content)
            path.chmod(0)
        case "cut":
            path.write_bytes(content[: len(content) * 6 // 10])
        case _:
            path.write_bytes(GARBAGE[kind])


@contextmanager
def obeying_permissions() -> Iterator[None]:
    """Make the permissions of files hold for root as well, in this thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    assert libc.capget(header, sets) == 0
    before = sets[0]
    sets[0] = before & ~_OVERRIDES
    assert libc.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0] = before
        assert libc.capset(header, sets) == 0
