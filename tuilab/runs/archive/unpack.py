"""Unpack a run from an archive, without trusting the archive.

Only regular files are unpacked, with names that the files of a run have, and within limits of size
and number. They are written into a scratch folder next to the runs. The run is moved among the runs
only if it can be read, and if its record does not claim to be running here.
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
from tuilab.runs.archive.names import FOLDERS, MOST_BYTES, MOST_FILES, is_run_file
from tuilab.storage.files import open_regular
from tuilab.storage.scratch import scratch
from tuilab.text.display import plural, show
from tuilab.text.words import size

_MAX_NAME_BYTES = 4096  # of a name that is too long for its header
_BLOCK = 512
_CHUNK = 1 << 20
_RUN = re.compile(r"(?a:[0-9]{8}T[0-9]{9}Z-[\w.+-]{1,60}-[0-9a-f]{6,12})")
_FIRST = "journal/supervisor.jsonl"
_FILE_TYPES = (tarfile.REGTYPE, tarfile.AREGTYPE)
_EXAMINED = (RunStarted, StateChanged, WorkerExited, ScenarioFinished, Corrupt, Gap)
# Headers that other programs add. Nothing in them is needed.
_FOREIGN_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE)


class RefusedArchive(UsageError):
    """The archive does not contain a run, or is not to be trusted."""


@dataclass
class UnpackedRun:
    """A run that was unpacked."""

    run_dir: Path
    left_out: list[str] = field(default_factory=list)  # names that no file of a run has
    damage: str = ""


def unpack(
    path: Path, root: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES
) -> UnpackedRun:
    """Unpack the run in an archive into `root`, and mark it as imported.

    If anything fails, nothing of it is left. Raise RefusedArchive for a file that is no archive of
    a run, is too large or has a run that exists. Raise UsageError if it cannot be read, and
    CannotRecord if the disk refuses.
    """
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with scratch(root) as scratch_dir:
            unpacked = _unpack(path, scratch_dir, most_bytes, most_files)
            _examine(unpacked)
            run_dir = root / unpacked.run_dir.name
            if os.path.lexists(run_dir):
                raise RefusedArchive(
                    f"the run {show(run_dir.name)} already exists in {show(root)}; "
                    "import it into another folder with --root DIR"
                )
            mark_imported(unpacked.run_dir)
            os.rename(unpacked.run_dir, run_dir)
            unpacked.run_dir = run_dir
            return unpacked
    except tarfile.TarError as problem:
        raise RefusedArchive(f"{show(path)} is not an archive of a run: {problem}") from problem
    except gzip.BadGzipFile as problem:
        raise RefusedArchive(
            f"{show(path)} is not an archive of a run; name a file that an export wrote"
        ) from problem
    except (EOFError, zlib.error) as problem:
        raise RefusedArchive(
            f"{show(path)} is not an archive of a run, or is incomplete: {problem}"
        ) from problem
    except OSError as problem:
        raise CannotRecord(
            f"cannot unpack {show(path)} into {show(root)}: {problem.strerror or problem}"
        ) from problem


def _unpack(path: Path, scratch_dir: Path, most_bytes: int, most_files: int) -> UnpackedRun:
    """Write the files of an archive into the scratch folder, and return where the run is.

    Raise RefusedArchive as soon as a name, a size or the first record is not that of a run. Files
    that no run has are skipped and listed in `left_out`.
    """
    unpacked = UnpackedRun(scratch_dir)  # its folder is known with the first name
    written_bytes = 0
    disk = os.statvfs(scratch_dir)
    # Other programs that write to this disk need room as well.
    max_bytes = min(most_bytes, disk.f_bavail * disk.f_frsize // 2)
    with _open(path) as file, gzip.GzipFile(fileobj=file) as compressed:
        for position, header in enumerate(_read_headers(compressed, most_files)):
            if position >= most_files:
                raise RefusedArchive(
                    f"{show(path)} holds more than {most_files} files: not an archive of a run"
                )
            name = _check_name(header, unpacked, scratch_dir)
            written_bytes += header.size
            if written_bytes > max_bytes:
                raise RefusedArchive(
                    f"{show(path)} holds more than {size(max_bytes)}, the limit for an archive"
                )
            target = unpacked.run_dir / name if name else None
            _read_content(compressed, header.size, target)
            if name == _FIRST:
                _examine_start(unpacked.run_dir)  # before much is unpacked
        # Reading the end checks the checksum of the whole.
        if len(compressed.read(_CHUNK)) == _CHUNK:
            raise RefusedArchive(f"{show(path)} has data after its end: not an archive of a run")
    if unpacked.run_dir == scratch_dir:
        raise RefusedArchive(f"{show(path)} is empty: not an archive of a run")
    return unpacked


def _open(path: Path) -> BinaryIO:
    try:
        return open(open_regular(path, may_be_link=True), "rb")
    except OSError as problem:
        raise UsageError(f"cannot read {show(path)}: {problem.strerror or problem}") from problem


def _read_headers(compressed: gzip.GzipFile, most_files: int) -> Iterator[tarfile.TarInfo]:
    """Yield the headers of the files; the caller reads the content that follows each of them.

    Nothing in a header is trusted, and the length of a name is limited. Raise RefusedArchive for a
    header that is too long, and EOFError if the archive ends within a header.
    """
    long_name = ""
    for _ in range(3 * most_files):  # a file may have headers for a long name before its own
        block = _read(compressed, _BLOCK)
        if not block.strip(b"\0"):
            return
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if header.size < 0:
            raise RefusedArchive("the archive has a file of a negative size")
        is_long_name = header.type == tarfile.GNUTYPE_LONGNAME
        if not is_long_name and header.type not in _FOREIGN_HEADERS:
            if long_name:
                header.name = long_name
                long_name = ""
            yield header
            continue
        max_bytes = _MAX_NAME_BYTES if is_long_name else 16 * _MAX_NAME_BYTES
        if header.size > max_bytes:
            raise RefusedArchive(f"the archive has a header of {header.size} bytes")
        text = _read(compressed, header.size)
        _read(compressed, -header.size % _BLOCK)
        if is_long_name:
            long_name = text.rstrip(b"\0").decode("utf-8", "surrogateescape")
    raise RefusedArchive("the archive has headers without end: not unpacked")


def _check_name(header: tarfile.TarInfo, unpacked: UnpackedRun, scratch_dir: Path) -> str:
    """Return the name of a file relative to the run's folder; empty if the file is left out.

    RefusedArchive for a name that no archive of ours has. The first name makes the run's folder.
    """
    parts = header.name.removeprefix("./").rstrip("/").split("/")
    is_folder = header.type == tarfile.DIRTYPE
    if header.type not in _FILE_TYPES and not is_folder:
        raise RefusedArchive(
            f"the archive holds {show(header.name, 100)}, which is not a regular file: not unpacked"
        )
    is_artifact = len(parts) == 3 and parts[1] == "artifacts"
    if is_artifact:  # it may have any name that a file can have
        is_odd = "\0" in header.name
    else:
        is_odd = not header.name.isprintable()
    if is_odd or any(part in ("", ".", "..") for part in parts):
        raise RefusedArchive(
            f"the archive holds {show(header.name, 100)}, a name that leads elsewhere: not unpacked"
        )
    run, *rest = parts
    if not _RUN.fullmatch(run):
        raise RefusedArchive(
            f"the archive holds {show(run, 100)}, which is not the folder of a run: not unpacked"
        )
    if unpacked.run_dir == scratch_dir:
        unpacked.run_dir = scratch_dir / run
        unpacked.run_dir.mkdir(mode=0o700)
        for folder in FOLDERS:
            (unpacked.run_dir / folder).mkdir(mode=0o700)
    elif unpacked.run_dir.name != run:
        raise RefusedArchive("the archive holds more than one run: not unpacked")
    if is_folder:
        return ""
    name = "/".join(rest)
    if not is_run_file(name):
        unpacked.left_out.append(name)
        return ""
    return name


def _read_content(compressed: gzip.GzipFile, byte_count: int, path: Path | None) -> None:
    """Write the content that follows a header into a new file, or skip it if there is no path.

    Raise RefusedArchive if the file exists, because then the archive has two of its name.
    """
    target = None
    if path is not None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            target = os.fdopen(os.open(path, flags, 0o600), "wb")
        except FileExistsError as problem:
            raise RefusedArchive(
                f"the archive holds {show(path.name, 100)} twice: not unpacked"
            ) from problem
    with target or contextlib.nullcontext():
        remaining = byte_count
        while remaining:
            chunk = _read(compressed, min(remaining, _CHUNK))
            remaining -= len(chunk)
            if target is not None:
                target.write(chunk)
    _read(compressed, -byte_count % _BLOCK)


def _read(compressed: gzip.GzipFile, byte_count: int) -> bytes:
    """Return exactly so many bytes; EOFError if there are fewer."""
    data = b""
    while len(data) < byte_count:
        more = compressed.read(byte_count - len(data))
        if not more:
            raise EOFError("it ends in the middle")
        data += more
    return data


def _examine_start(run_dir: Path) -> None:
    """Refuse a run of another name, as soon as its first record was unpacked.

    A stream with another first record is examined when everything was unpacked.
    """
    with open(run_dir / _FIRST, "rb") as stream:
        started = parse(stream.readline(LINE_LIMIT + 1).rstrip(b"\n"))
    if isinstance(started, RunStarted):
        _check_run_name(run_dir, started)


def _check_run_name(run_dir: Path, started: RunStarted) -> None:
    if started.run != run_dir.name:
        raise RefusedArchive(
            f"the archive calls the run {show(run_dir.name, 100)}, "
            f"its record {show(started.run, 100)}: not unpacked"
        )


def _examine(unpacked: UnpackedRun) -> None:
    """Read the run as every view does, and note its damage.

    RefusedArchive if it is not a run, or if its name could be mistaken for that of processes of
    this machine. Little of the run is kept in memory: an archive may have been compressed a
    thousandfold.
    """
    watch = Watch(unpacked.run_dir, lambda item: item if isinstance(item, _EXAMINED) else None)
    try:
        watch.catch_up()
    finally:
        watch.close()
    run = watch.summary.run
    if run is None:
        raise RefusedArchive("the archive has no record of a run's start: not unpacked")
    _check_run_name(unpacked.run_dir, run)
    if not watch.summary.is_over and presence.is_of_this_box(run.supervisor):
        raise RefusedArchive(
            "the archive has an unfinished run of this machine, "
            "and its processes could be mistaken for others: not unpacked"
        )
    unpacked.damage = _describe_damage(watch.summary)


def _describe_damage(summary: RunSummary) -> str:
    """Return how incomplete the record of a run is; empty if it is complete."""
    damage = summary.damage
    if not damage.is_any:
        return ""
    corrupt = plural(damage.corrupt_count, "corrupt line")
    missing = plural(damage.unexplained_count, "record")
    return (
        f"the recorded data is incomplete: {corrupt}, {missing} missing, "
        f"{damage.lost_count} not written"
    )
