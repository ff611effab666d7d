"""Unpacks a run from an archive.

It takes plain files of the names that a run has, bounded in size and number, into a folder beside the runs; only a run that
reads as one, and does not claim to go on here, is moved among them.
"""

import contextlib
import gzip
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tuilab.errors import CannotRecord, UsageError
from tuilab.record import presence
from tuilab.record.encoding import LINE_LIMIT
from tuilab.record.events import RunStarted, ScenarioFinished, StateChanged, WorkerExited
from tuilab.record.journal.lines import Corrupt, Gap, parse
from tuilab.record.live_run import Watch
from tuilab.record.origin.imported import mark_imported
from tuilab.record.summary import RunSummary
from tuilab.runs.archive.names import FOLDERS, MOST_BYTES, MOST_FILES, is_of_a_run
from tuilab.storage.files import open_regular
from tuilab.storage.scratch import scratch
from tuilab.text.display import plural, show
from tuilab.text.words import size

_NAME_BYTES = 4096  # of a name too long for a header
_BLOCK = 512
_CHUNK = 1 << 20
_RUN = re.compile(r"(?a:[0-9]{8}T[0-9]{9}Z-[\w.+-]{1,60}-[0-9a-f]{6,12})")
_FIRST = "journal/supervisor.jsonl"
_FILE_TYPES = (tarfile.REGTYPE, tarfile.AREGTYPE)
_EXAMINED = (RunStarted, StateChanged, WorkerExited, ScenarioFinished, Corrupt, Gap)
_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE)  # what other programs add; nothing in them is needed


class Refused(UsageError):
    """The archive is not one of a run, or not one to be trusted."""


@dataclass
class Unpacked:
    """A run that came out of an archive."""

    run_dir: Path
    left_out: list[str] = field(default_factory=list)  # names that no run has
    damage: str = ""


def unpack(
    path: Path, root: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES
) -> Unpacked:
    """Put the run in an archive among the runs in `root`; whatever goes wrong, nothing is left of it."""
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with scratch(root) as below:
            found = _unpack(path, below, most_bytes, most_files)
            _examine(found)
            there = root / found.run_dir.name
            if os.path.lexists(there):
                raise Refused(
                    f"the run {show(there.name)} already exists in {show(root)}; import it into another folder with --root DIR"
                )
            mark_imported(found.run_dir)
            os.rename(found.run_dir, there)
            found.run_dir = there
            return found
    except tarfile.TarError as problem:
        raise Refused(f"{show(path)} is not an archive of a run: {problem}") from problem
    except gzip.BadGzipFile as problem:
        raise Refused(
            f"{show(path)} is not an archive of a run; name a file that an export wrote"
        ) from problem
    except (EOFError, zlib.error) as problem:
        raise Refused(
            f"{show(path)} is not an archive of a run, or is incomplete: {problem}"
        ) from problem
    except OSError as problem:
        raise CannotRecord(
            f"cannot unpack {show(path)} into {show(root)}: {problem.strerror or problem}"
        ) from problem


def _unpack(path: Path, below: Path, most_bytes: int, most_files: int) -> Unpacked:
    found = Unpacked(below)
    written = 0
    room = os.statvfs(below)
    most = min(
        most_bytes, room.f_bavail * room.f_frsize // 2
    )  # whoever else writes there needs room, too
    with _open(path) as file, gzip.GzipFile(fileobj=file) as squeezed:
        for at, about in enumerate(_members(squeezed, most_files)):
            if at >= most_files:
                raise Refused(
                    f"{show(path)} holds more than {most_files} files: not an archive of a run"
                )
            name = _checked_name(about, found, below)
            written += about.size
            if written > most:
                raise Refused(
                    f"{show(path)} holds more than {size(most)}, the limit for an archive"
                )
            _take(squeezed, about.size, found.run_dir / name if name else None)
            if name == _FIRST:
                _examine_start(found.run_dir)  # before much is unpacked
        if len(squeezed.read(_CHUNK)) == _CHUNK:  # with the end comes the checksum of all
            raise Refused(f"{show(path)} has data after its end: not an archive of a run")
    if found.run_dir == below:
        raise Refused(f"{show(path)} is empty: not an archive of a run")
    return found


def _open(path: Path) -> BinaryIO:
    try:
        return open(open_regular(path, may_be_link=True), "rb")
    except OSError as problem:
        raise UsageError(f"cannot read {show(path)}: {problem.strerror or problem}") from problem


def _members(squeezed: gzip.GzipFile, most_files: int) -> Iterator[tarfile.TarInfo]:
    """Yield the headers; whoever gets one reads what belongs to it. Nothing is believed, and a long name only so long."""
    long_name = ""
    for _ in range(3 * most_files):
        block = _read(squeezed, _BLOCK)
        if not block.strip(b"\0"):
            return
        about = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if about.size < 0:
            raise Refused("the archive has a file of a negative size")
        if about.type == tarfile.GNUTYPE_LONGNAME or about.type in _HEADERS:
            if about.size > (
                _NAME_BYTES if about.type == tarfile.GNUTYPE_LONGNAME else 16 * _NAME_BYTES
            ):
                raise Refused(f"the archive has a header of {about.size} bytes")
            text = _read(squeezed, about.size)
            _read(squeezed, -about.size % _BLOCK)
            if about.type == tarfile.GNUTYPE_LONGNAME:
                long_name = text.rstrip(b"\0").decode("utf-8", "surrogateescape")
            continue
        about.name, long_name = long_name or about.name, ""
        yield about
    raise Refused("the archive has headers without end: not unpacked")


def _checked_name(about: tarfile.TarInfo, found: Unpacked, below: Path) -> str:
    """Return the name of a file below the run's folder; empty for what is left out. Raise for what no honest archive has."""
    parts = about.name.removeprefix("./").rstrip("/").split("/")
    is_folder = about.type == tarfile.DIRTYPE
    if about.type not in _FILE_TYPES and not is_folder:
        raise Refused(
            f"the archive holds {show(about.name, 100)}, which is not a regular file: not unpacked"
        )
    is_artifact = (
        parts[1:2] == ["artifacts"] and len(parts) == 3
    )  # which may have any name that a file can have
    is_odd = "\0" in about.name if is_artifact else not about.name.isprintable()
    if is_odd or any(part in ("", ".", "..") for part in parts):
        raise Refused(
            f"the archive holds {show(about.name, 100)}, a name that leads elsewhere: not unpacked"
        )
    if not _RUN.fullmatch(parts[0]):
        raise Refused(
            f"the archive holds {show(parts[0], 100)}, which is not the folder of a run: not unpacked"
        )
    if found.run_dir == below:
        found.run_dir = below / parts[0]
        for folder in (found.run_dir, *(found.run_dir / name for name in FOLDERS)):
            folder.mkdir(mode=0o700)
    elif found.run_dir.name != parts[0]:
        raise Refused("the archive holds more than one run: not unpacked")
    name = "/".join(parts[1:])
    if is_folder:
        return ""
    if not is_of_a_run(name):
        found.left_out.append(name)
        return ""
    return name


def _take(squeezed: gzip.GzipFile, size: int, path: Path | None) -> None:
    """Write what belongs to a header into a new file, or pass over it."""
    into = None
    if path is not None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            into = os.fdopen(os.open(path, flags, 0o600), "wb")
        except FileExistsError as problem:
            raise Refused(
                f"the archive holds {show(path.name, 100)} twice: not unpacked"
            ) from problem
    with into or contextlib.nullcontext():
        left = size
        while left:
            chunk = _read(squeezed, min(left, _CHUNK))
            left -= len(chunk)
            if into is not None:
                into.write(chunk)
    _read(squeezed, -size % _BLOCK)


def _read(squeezed: gzip.GzipFile, size: int) -> bytes:
    """Return exactly so many bytes."""
    data = b""
    while len(data) < size:
        more = squeezed.read(size - len(data))
        if not more:
            raise EOFError("it ends in the middle")
        data += more
    return data


def _examine_start(run_dir: Path) -> None:
    """Refuse the run of another name as soon as its first record is there; what begins otherwise is looked at when all is."""
    with open(run_dir / _FIRST, "rb") as stream:
        started = parse(stream.readline(LINE_LIMIT + 1).rstrip(b"\n"))
    if isinstance(started, RunStarted):
        _check_name(run_dir, started)


def _check_name(run_dir: Path, started: RunStarted) -> None:
    if started.run != run_dir.name:
        raise Refused(
            f"the archive calls the run {show(run_dir.name, 100)}, its record {show(started.run, 100)}: not unpacked"
        )


def _examine(found: Unpacked) -> None:
    """Read the run as every view does, and keep little of it: what an archive holds may be packed a thousandfold.

    Refuse what is none, or what would let its name reach processes of this box.
    """
    watch = Watch(found.run_dir, lambda item: item if isinstance(item, _EXAMINED) else None)
    try:
        watch.catch_up()
    finally:
        watch.close()
    run = watch.summary.run
    if run is None:
        raise Refused("the archive has no record of a run's start: not unpacked")
    _check_name(found.run_dir, run)
    if not watch.summary.is_over and presence.is_of_this_box(run.supervisor):
        raise Refused(
            "the archive has an unfinished run of this machine, and its processes could be mistaken for others: not unpacked"
        )
    found.damage = _damage(watch.summary)


def _damage(summary: RunSummary) -> str:
    damage = summary.damage
    if not damage.is_any:
        return ""
    corrupt, missing = (
        plural(damage.corrupt_count, "corrupt line"),
        plural(damage.missing_count, "record"),
    )
    return f"the recorded data is incomplete: {corrupt}, {missing} missing, {damage.lost_count} not written"
