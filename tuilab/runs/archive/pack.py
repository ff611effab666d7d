"""Pack a run into an archive, without the private data that should not be shared."""

import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO
from zlib import crc32

import msgspec

from tuilab.catalogue.imports import SOURCE_LIMIT
from tuilab.errors import CannotRecord, UsageError
from tuilab.record.digest import digest_of
from tuilab.record.encoding import LINE_LIMIT, encode_anything
from tuilab.record.events import Unknown
from tuilab.record.journal.lines import Corrupt, Gap, parse
from tuilab.record.journal.reader import BARREN_LINES
from tuilab.record.origin import taken_out
from tuilab.record.origin.taken_out import TakenOut
from tuilab.record.secrets import clean_bytes
from tuilab.record.states import RunState
from tuilab.runs import notes
from tuilab.runs.archive.names import MOST_BYTES, MOST_FILES, list_run_files
from tuilab.runs.redaction import Redactor, secrets_of_source
from tuilab.storage.files import new_file, open_regular
from tuilab.text.display import plural, show
from tuilab.text.words import size

_IN_MEMORY = 16 << 20  # bytes of a cleaned file that are not written to a temporary file
_SOURCE = "scenario.py"
_LOGS = ("stdout.log", "stderr.log")
_LINE = 2 * LINE_LIMIT  # bytes; no record is longer
# Bytes of a text that are cleaned together. A run prints less, so that none of our files is cut
# within a secret.
_PIECE = 4 << 20


@dataclass
class PackedRun:
    """The result of packing a run."""

    secrets: Redactor  # with the counts of what was removed
    files: int = 0  # in the archive
    unread: list[str] = field(default_factory=list)  # files that could not be read
    too_large: list[str] = field(default_factory=list)  # a source that no run could have
    source_sha256: str = ""  # of the source as it is in the archive
    is_source_whole: bool = True  # nothing was removed from the source or replaced in it


def pack(run_dir: Path, path: Path, *, keeps_private: bool = False) -> PackedRun:
    """Write the folder of a run, without links and devices, into a new file.

    The file appears when it is complete. Raise UsageError if the file exists, or if the run is too
    large or cannot be read; CannotRecord if the file cannot be written.
    """
    _check_limits(run_dir)
    packed = PackedRun(secrets=Redactor(secrets_of_source(run_dir)))
    redactor = None if keeps_private else packed.secrets
    try:
        # The header has no name and no time; 6 is the usual level of compression.
        with new_file(path) as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed:
            _pack(run_dir, compressed, redactor, packed)
            return packed
    except FileExistsError as problem:
        raise UsageError(f"{show(path)} already exists; name another file with -o") from problem
    except OSError as problem:
        if str(problem.filename).startswith(f"{run_dir}/"):
            raise UsageError(
                f"cannot read {show(problem.filename)}: {problem.strerror}; check its disk"
            ) from problem
        why = problem.strerror or problem
        raise CannotRecord(
            f"cannot write {show(path)}: {why}; name another file with -o"
        ) from problem


class _Source(io.FileIO):
    """A file of a run. An error at reading it is not mistaken for one at writing the archive."""

    def __init__(self, fd: int, title: str) -> None:
        super().__init__(fd)
        self._title = title

    def readinto(self, buffer: Any) -> int | None:
        """Fill a buffer, as `RawIOBase` does; UsageError if the disk fails."""
        try:
            return super().readinto(buffer)
        except OSError as problem:
            raise UsageError(
                f"cannot read {show(self._title)} of the run: {problem.strerror}; check its disk"
            ) from problem


def _check_limits(run_dir: Path) -> None:
    """Raise UsageError for a run that is too large to be unpacked again, before it is packed."""
    sizes = []
    for name in list_run_files(run_dir):
        with suppress(FileNotFoundError):
            sizes.append((run_dir / name).lstat().st_size)
    if sum(sizes) > MOST_BYTES or len(sizes) > MOST_FILES:
        files = f"{plural(len(sizes), 'file')} of {size(sum(sizes))}"
        limits = f"{MOST_FILES} of {size(MOST_BYTES)}"
        raise UsageError(
            f"{show(run_dir)} has {files}, and tuilab import takes {limits} at most; "
            "move artifacts elsewhere"
        )


def _pack(
    run_dir: Path, into: BinaryIO | gzip.GzipFile, redactor: Redactor | None, packed: PackedRun
) -> None:
    """Write each file of a run into a tar stream, and at last what was removed from the run.

    `packed` counts the files and gets the names of those that cannot be read. Without a redactor,
    nothing is removed.
    """
    with tarfile.open(fileobj=into, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for name in list_run_files(run_dir):
            if name != taken_out.FILE:  # written anew below
                _pack_file(archive, run_dir, name, redactor, packed)
        record = _taken_out(run_dir, packed, redactor)
        if record is not None:
            data = io.BytesIO(msgspec.json.encode(record))
            _add(archive, f"{run_dir.name}/{taken_out.FILE}", data, int(time.time()))
            packed.files += 1


def _pack_file(
    archive: tarfile.TarFile,
    run_dir: Path,
    name: str,
    redactor: Redactor | None,
    packed: PackedRun,
) -> None:
    """Write one file of a run into the archive, without private data if there is a redactor.

    A file that cannot be opened is left out and named in `packed.unread`; a source that is larger
    than any that runs, in `packed.too_large`.
    """
    try:
        fd = open_regular(run_dir / name)
    except OSError:
        packed.unread.append(name)
        return
    if name == _SOURCE and os.fstat(fd).st_size > SOURCE_LIMIT:
        os.close(fd)
        packed.too_large.append(name)
        return
    with io.BufferedReader(_Source(fd, name)) as file, _clean(name, file, redactor) as clean:
        if name == _SOURCE:
            packed.source_sha256 = _digest(clean)
            packed.is_source_whole = clean is file or packed.source_sha256 == _digest(file)
        modified_s = int(os.fstat(fd).st_mtime)
        _add(archive, f"{run_dir.name}/{name}", clean, modified_s)
        packed.files += 1


def _digest(file: IO[bytes]) -> str:
    file.seek(0)
    return hashlib.sha256(file.read(SOURCE_LIMIT)).hexdigest()


def _taken_out(run_dir: Path, packed: PackedRun, redactor: Redactor | None) -> TakenOut | None:
    """Return the record of what was removed, now and when the run was packed before.

    None if nothing was ever removed.
    """
    earlier = taken_out.taken_out(run_dir)
    if redactor is None or (packed.is_source_whole and not redactor.places):
        return earlier
    # With the state LOST, the records have a digest whether or not the run has ended.
    digest = earlier.digest if earlier else digest_of(run_dir, RunState.LOST)
    earlier_places = Counter(earlier.places) if earlier else Counter[str]()
    return TakenOut(dict(earlier_places + redactor.places), digest, packed.source_sha256)


def _add(archive: tarfile.TarFile, name: str, file: IO[bytes], modified_s: int) -> None:
    """Write a file into the archive, readable by its owner alone."""
    header = tarfile.TarInfo(name)
    # The length that the file has now: a running run goes on writing.
    header.size = file.seek(0, os.SEEK_END)
    header.mtime = modified_s
    header.mode = 0o600
    file.seek(0)
    archive.addfile(header, file)


# ---- private data


def _clean(name: str, file: BinaryIO, redactor: Redactor | None) -> IO[bytes]:
    """Return a file without private data; artifacts, which a scenario saved, stay as they are."""
    if redactor is None or name.startswith("artifacts/"):
        return file
    clean = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  (the caller closes it)
    try:
        clean.writelines(_clean_pieces(name, file, redactor))
    except BaseException:
        clean.close()
        raise
    return clean


def _clean_pieces(name: str, file: BinaryIO, redactor: Redactor) -> Iterator[bytes]:
    """Yield the pieces of a file without private data, by the kind of file that its name says.

    Source, streams and notes keep their form. Any other file is cleaned as text.
    """
    folder, _, short_name = name.rpartition("/")
    if name == _SOURCE:
        yield from _source(file, redactor)
    elif folder or name == notes.FILE:
        yield from _lines(file, redactor, short_name)
    else:
        if name in _LOGS:
            # The run counted the places of its own secrets from the beginning of the log.
            printed = io.BytesIO(redactor.printed(file.read(_PIECE), name))
            yield from _texts(printed, redactor, name)
        yield from _texts(file, redactor, name)


def _source(file: BinaryIO, redactor: Redactor) -> Iterator[bytes]:
    """Yield a source as one text; in pieces if it is not UTF-8."""
    data = file.read(SOURCE_LIMIT)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if not text:
        file.seek(0)
        yield from _texts(file, redactor, _SOURCE)
    else:
        yield redactor.source(text).encode()


def _lines(file: BinaryIO, redactor: Redactor, short_name: str) -> Iterator[bytes]:
    """Yield the lines of a stream, or of notes.

    After BARREN_LINES lines of another kind, no view reads on. The rest is cleaned as a text.
    """
    clean_line = _record
    place = "journal"
    if short_name == notes.FILE:
        clean_line = _note
        place = short_name
    barren_lines = 0
    while barren_lines <= BARREN_LINES:
        line = file.readline(_LINE)
        if not line:
            break
        clean = clean_line(line, redactor)
        if clean is None:
            barren_lines += 1
            clean = _text(line, redactor, place)
        yield clean
    yield from _texts(file, redactor, place)


def _record(line: bytes, redactor: Redactor) -> bytes | None:
    """Return a line of a stream without private data; None if it is not a record."""
    item = parse(line.rstrip(b"\n")) if line.endswith(b"\n") else ""
    if isinstance(item, str):
        return None
    clean = redactor.item(item)
    if clean is item:
        return line
    assert not isinstance(clean, Corrupt | Gap)
    if isinstance(clean, Unknown):
        body = json.dumps({"k": clean.k, "n": clean.n, "t": clean.t, **clean.fields}).encode()
    else:
        body = encode_anything(clean)
    return b"%08x %b\n" % (crc32(body), body)


def _note(line: bytes, redactor: Redactor) -> bytes | None:
    """Return a line of notes without private data; None if it is not JSON."""
    try:
        note = json.loads(line)
    except (ValueError, RecursionError):
        return None
    clean = redactor.of(note, notes.FILE)
    if clean == note:
        return line
    return json.dumps(clean).encode() + b"\n"


def _texts(file: BinaryIO, redactor: Redactor, place: str) -> Iterator[bytes]:
    """Yield a text in cleaned pieces of whole lines, unless a line is longer than `_LINE`."""
    while True:
        piece = file.read(_PIECE) + file.readline(_LINE)
        if not piece:
            return
        yield _text(piece, redactor, place)


def _text(data: bytes, redactor: Redactor, place: str) -> bytes:
    if data.isspace():
        return data
    return clean_bytes(data, partial(redactor.of, place=place))
