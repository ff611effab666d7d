"""What is kept for people in small files of ours: notes, scores, calibrations, choices, places in the queue.

They would miss it. So what of it cannot be read is told when a command ends, and set aside before something else is written
in its place. A newer tuilab may add fields, which an older one passes over and keeps; one that writes in another way says so
with a higher `format`, and an older one leaves that as it is. What does not say is of format 1.
"""

import errno
import json
import os
import stat
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tuilab.errors import CannotRecord
from tuilab.storage.files import Fault, Unusable, read_small, replace
from tuilab.text.display import plural, show

FORMAT = 1
_TOLD = 5  # files, one by one
_problems: dict[str, str] = {}  # by path

PathLike = str | os.PathLike[str]
T = TypeVar("T")


def fields_of(data: bytes) -> dict[str, Any]:
    """Return a JSON object as its fields; ValueError where there is none, Unusable where a newer tuilab wrote it."""
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("its content is not a table of fields")
    version = found.get("format", FORMAT)
    if isinstance(version, int) and version > FORMAT:
        raise Unusable(
            Fault.FOREIGN,
            f"it was written by a newer tuilab (format {show(version, 20)}); upgrade tuilab",
        )
    return found


def struct_of(kind: type[T]) -> Callable[[bytes], T]:
    """Return what decodes a JSON object into a struct; for who may take the time to load msgspec."""
    import msgspec

    def decode(data: bytes) -> T:
        try:
            return msgspec.convert(fields_of(data), kind)
        except msgspec.MsgspecError as problem:  # no ValueError in older ones
            raise ValueError(str(problem)) from problem

    return decode


def read(path: PathLike, decode: Callable[[bytes], T], limit: int) -> T | None:
    """Return what a file says; None where there is none, or where it is of no use, which is told."""
    try:
        return read_small(path, decode, limit)
    except Unusable as problem:
        if problem.fault is not Fault.ABSENT:
            complain(path, problem)
    return None


def read_lines(path: PathLike, take: Callable[[dict[str, Any]], object], limit: int) -> None:
    """Hand on the fields of each line of a file; a line of no use takes no other with it, and is told.

    `take` raises ValueError or TypeError for fields that we never wrote.
    """
    bad, newer = 0, ""
    for line in filter(None, read(path, bytes.splitlines, limit) or []):
        try:
            take(fields_of(line))
        except Unusable as problem:
            newer = str(problem)
        except (ValueError, TypeError, RecursionError):
            bad += 1
    if bad or newer:
        complain(path, newer or f"{plural(bad, 'line')} of it cannot be read")


def append_line(path: PathLike, fields: Mapping[str, Any], limit: int) -> None:
    """Add a line at the end of a file in one write, so that two at once lose nothing; behind a torn line it begins anew.

    OSError where it cannot be added, EFBIG where there is no room; no link is followed.
    """
    fd = os.open(
        path,
        os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK,
        0o600,
    )
    try:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode):
            raise OSError(errno.EINVAL, f"{os.path.basename(path)} is not a regular file")
        is_torn = seen.st_size and os.pread(fd, 1, seen.st_size - 1) != b"\n"
        line = b"\n" * bool(is_torn) + json.dumps(fields).encode() + b"\n"
        if seen.st_size + len(line) > limit:
            raise OSError(errno.EFBIG, f"the file has reached its limit of {limit // 1024} KiB")
        if os.write(fd, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)


def update(
    path: PathLike, changes: Mapping[str, Any], limit: int, *, indent: int | None = None
) -> None:
    """Write these fields of a file, and leave what else it holds; what is of no use there is set aside.

    CannotRecord where a newer tuilab keeps it in another way.
    """
    try:
        known = read_small(path, fields_of, limit)
    except Unusable as problem:
        if problem.fault is Fault.FOREIGN:
            raise CannotRecord(f"cannot write {show(path)}: {problem}") from problem
        if problem.fault is not Fault.ABSENT:
            _set_aside(path, problem)
        known = {}
    replace(path, json.dumps({**known, **changes}, indent=indent).encode())


def _set_aside(path: PathLike, why: Unusable) -> None:
    aside = f"{os.fspath(path)}.unusable-{time.strftime('%Y%m%dT%H%M%S')}"
    os.rename(path, aside)
    complain(path, f"{why}; it is set aside as {os.path.basename(aside)}")


def complain(path: PathLike, why: object) -> None:
    """Note that a file, or part of it, cannot be used."""
    _problems[os.fspath(path)] = str(why)


def complaint_about(path: PathLike) -> str:
    """Return the sentence for one file, which is told by whoever asks, and not at the end; nothing where it can be used."""
    why = _problems.pop(os.fspath(path), "")
    return _sentence(os.fspath(path), why) if why else ""


def complaints() -> list[str]:
    """Return a sentence for each file that was met and cannot be used, once."""
    found = [_sentence(path, why) for path, why in list(_problems.items())[:_TOLD]]
    more = len(_problems) - len(found)
    _problems.clear()
    return [*found, *([f"{plural(more, 'more file')} cannot be used"] if more > 0 else [])]


def _sentence(path: str, why: str) -> str:
    return f"{show(path)} cannot be used: {show(why, 300)}"
