"""Read and write the small files that hold data of users.

They are notes, scores, calibrations, choices, and places in the queue, which users would miss. So
a file that cannot be read is reported when a command ends, and kept under another name before it
is replaced. A newer tuilab may add fields, which an older one ignores and keeps. If it writes in
another way, it stores a higher `format`, and an older tuilab leaves that file unchanged. A file
without `format` has format 1.
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
_MAX_SENTENCES = 5  # about single files; the others are counted
_complaints: dict[str, str] = {}  # the reason of each, by path

PathLike = str | os.PathLike[str]
T = TypeVar("T")


def fields_of(data: bytes) -> dict[str, Any]:
    """Return the fields of a JSON object.

    ValueError if it is no JSON object, Unusable if a newer tuilab wrote it.
    """
    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("its content is not a table of fields")
    version = fields.get("format", FORMAT)
    if isinstance(version, int) and version > FORMAT:
        raise Unusable(
            Fault.FOREIGN,
            f"it was written by a newer tuilab (format {show(version, 20)}); upgrade tuilab",
        )
    return fields


def struct_of(kind: type[T]) -> Callable[[bytes], T]:
    """Return a function that decodes a JSON object into a struct, or raises as `fields_of` does.

    It loads msgspec, which takes too long for `tuilab list`.
    """
    import msgspec

    def decode(data: bytes) -> T:
        try:
            return msgspec.convert(fields_of(data), kind)
        except msgspec.MsgspecError as problem:  # in older versions, it is no ValueError
            raise ValueError(str(problem)) from problem

    return decode


def read(path: PathLike, decode: Callable[[bytes], T], limit: int) -> T | None:
    """Return the decoded content of a file; None if there is none.

    If the file is unusable, return None and note a complaint.
    """
    try:
        return read_small(path, decode, limit)
    except Unusable as problem:
        if problem.fault is not Fault.ABSENT:
            complain(path, problem)
    return None


def read_lines(path: PathLike, take: Callable[[dict[str, Any]], object], limit: int) -> None:
    """Call `take` with the fields of each line of a file.

    `take` raises ValueError or TypeError for fields that tuilab never writes. Such a line does not
    affect others, and leads to a complaint.
    """
    bad_count = 0
    newer_format = ""
    for line in read(path, bytes.splitlines, limit) or []:
        if not line:
            continue
        try:
            take(fields_of(line))
        except Unusable as problem:
            newer_format = str(problem)
        except (ValueError, TypeError, RecursionError):
            bad_count += 1
    if newer_format:
        complain(path, newer_format)
    elif bad_count:
        complain(path, f"{plural(bad_count, 'line')} of it cannot be read")


def append_line(path: PathLike, fields: Mapping[str, Any], limit: int) -> None:
    """Add a line at the end of a file in one write, so that two processes lose nothing.

    After an unfinished line, the new one starts on a line of its own. OSError if the line cannot
    be added, with EFBIG if the file would be too large; no link is followed.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(path, flags, 0o600)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, f"{os.path.basename(path)} is not a regular file")
        line = json.dumps(fields).encode() + b"\n"
        if status.st_size and os.pread(fd, 1, status.st_size - 1) != b"\n":
            line = b"\n" + line
        if status.st_size + len(line) > limit:
            raise OSError(errno.EFBIG, f"the file has reached its limit of {limit // 1024} KiB")
        if os.write(fd, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)


def update(
    path: PathLike, changes: Mapping[str, Any], limit: int, *, indent: int | None = None
) -> None:
    """Write some fields of a file, and keep its other fields; an unusable file is set aside.

    Raises CannotRecord if a newer tuilab stores it in another way, OSError if it cannot be written.
    """
    fields: dict[str, Any] = {}
    try:
        fields = read_small(path, fields_of, limit)
    except Unusable as problem:
        if problem.fault is Fault.FOREIGN:
            raise CannotRecord(f"cannot write {show(path)}: {problem}") from problem
        if problem.fault is not Fault.ABSENT:
            _set_aside(path, problem)
    fields.update(changes)
    replace(path, json.dumps(fields, indent=indent).encode())


def _set_aside(path: PathLike, reason: Unusable) -> None:
    """Rename a file that cannot be used, and note a complaint with its new name."""
    new_path = f"{os.fspath(path)}.unusable-{time.strftime('%Y%m%dT%H%M%S')}"
    os.rename(path, new_path)
    complain(path, f"{reason}; it is set aside as {os.path.basename(new_path)}")


def complain(path: PathLike, reason: object) -> None:
    """Note that a file, or part of it, cannot be used."""
    _complaints[os.fspath(path)] = str(reason)


def complaint_about(path: PathLike) -> str:
    """Return the complaint about one file, which is then not reported at the end.

    Empty if the file can be used.
    """
    reason = _complaints.pop(os.fspath(path), "")
    return _sentence(os.fspath(path), reason) if reason else ""


def complaints() -> list[str]:
    """Return a sentence for each file that cannot be used, and forget the complaints."""
    first = list(_complaints.items())[:_MAX_SENTENCES]
    sentences = [_sentence(path, reason) for path, reason in first]
    more = len(_complaints) - len(first)
    if more:
        sentences.append(f"{plural(more, 'more file')} cannot be used")
    _complaints.clear()
    return sentences


def _sentence(path: str, reason: str) -> str:
    return f"{show(path)} cannot be used: {show(reason, 300)}"
