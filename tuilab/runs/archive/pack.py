"""Packs a run into an archive, without what nobody should hand on."""

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
from tuilab.runs.archive.names import MOST_BYTES, MOST_FILES, names
from tuilab.runs.redaction import Redactor
from tuilab.storage.files import new_file, open_regular
from tuilab.text.display import plural, show
from tuilab.text.words import size

_IN_MEMORY = 16 << 20  # bytes of a file
_SOURCE = "scenario.py"
_LOGS = ("stdout.log", "stderr.log")
_LINE = 2 * LINE_LIMIT  # what is longer is no record
_PIECE = (
    4 << 20
)  # bytes of a text that are looked at together: more than a run prints, so a secret is cut in no file of ours


@dataclass
class Packed:
    """What became of a run in an archive: how many files, what was taken out of them, and which could not be read."""

    files: int = 0
    secrets: Redactor = field(default_factory=Redactor)
    unread: list[str] = field(default_factory=list)
    source_sha256: str = ""  # of the source as it is in the archive
    is_source_whole: bool = True  # nothing of it was taken out or replaced


def pack(run_dir: Path, path: Path, *, keeps_private: bool = False) -> Packed:
    """Write the folder of a run into a new file, without links and devices; it is there when it is whole."""
    _refuse_what_none_unpacks(run_dir)
    packed = Packed()
    try:
        with new_file(path) as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as squeezed:
            _pack(run_dir, squeezed, None if keeps_private else packed.secrets, packed)
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
    """A file of a run; an error at reading it is not taken for one at writing the archive."""

    def __init__(self, fd: int, title: str) -> None:
        super().__init__(fd)
        self._title = title

    def readinto(self, buffer: Any) -> int | None:
        try:
            return super().readinto(buffer)
        except OSError as problem:
            raise UsageError(
                f"cannot read {show(self._title)} of the run: {problem.strerror}; check its disk"
            ) from problem


def _refuse_what_none_unpacks(run_dir: Path) -> None:
    """Say before the work what would be said of the archive: a run is unpacked up to some size."""
    sizes = []
    for name in names(run_dir):
        with suppress(FileNotFoundError):
            sizes.append((run_dir / name).lstat().st_size)
    if sum(sizes) > MOST_BYTES or len(sizes) > MOST_FILES:
        held = f"{plural(len(sizes), 'file')} of {size(sum(sizes))}"
        most = f"{MOST_FILES} of {size(MOST_BYTES)}"
        raise UsageError(
            f"{show(run_dir)} has {held}, and tuilab import takes {most} at most; move artifacts elsewhere"
        )


def _pack(
    run_dir: Path, into: BinaryIO | gzip.GzipFile, secrets: Redactor | None, packed: Packed
) -> None:
    with tarfile.open(fileobj=into, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for name in names(run_dir):
            if name == taken_out.FILE:
                continue
            try:
                fd = open_regular(run_dir / name)
            except OSError:
                packed.unread.append(name)
                continue
            with io.BufferedReader(_Source(fd, name)) as file, _clean(name, file, secrets) as clean:
                if name == _SOURCE:
                    packed.source_sha256 = _digest(clean)
                    packed.is_source_whole = clean is file or packed.source_sha256 == _digest(file)
                modified = int(os.fstat(fd).st_mtime)
                _add(archive, f"{run_dir.name}/{name}", clean, modified)
                packed.files += 1
        if told := _taken_out(run_dir, packed, secrets):
            _add(
                archive,
                f"{run_dir.name}/{taken_out.FILE}",
                io.BytesIO(msgspec.json.encode(told)),
                int(time.time()),
            )
            packed.files += 1


def _digest(file: IO[bytes]) -> str:
    file.seek(0)
    return hashlib.sha256(file.read(SOURCE_LIMIT)).hexdigest()


def _taken_out(run_dir: Path, packed: Packed, secrets: Redactor | None) -> TakenOut | None:
    """Return what is not in the archive, now or since the run was packed before."""
    before = taken_out.taken_out(run_dir)
    if not secrets or (packed.is_source_whole and not secrets.places):
        return before
    digest = before.digest if before else digest_of(run_dir, RunState.LOST)
    places = Counter(before.places if before else {}) + secrets.places
    return TakenOut(dict(places), digest, packed.source_sha256)


def _add(archive: tarfile.TarFile, name: str, file: IO[bytes], modified: int) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mtime, about.mode = file.seek(0, os.SEEK_END), modified, 0o600
    file.seek(0)
    archive.addfile(about, file)  # as long as it is now: a run that goes on writes on


def _clean(name: str, file: BinaryIO, secrets: Redactor | None) -> IO[bytes]:
    """Return a file as it may be handed on; what a scenario saved is not looked into."""
    folder, _, short = name.rpartition("/")
    if secrets is None or folder == "artifacts":
        return file
    clean = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  (closed by who adds it)
    is_lines = folder or short == notes.FILE
    try:
        if name == _SOURCE:
            clean.writelines(_source(file, secrets))
        elif name in _LOGS:
            printed = io.BytesIO(secrets.printed(file.read(_PIECE), name))
            clean.writelines(_texts(printed, secrets, short))
            clean.writelines(_texts(file, secrets, short))
        else:
            clean.writelines(
                _lines(file, secrets, short) if is_lines else _texts(file, secrets, short)
            )
    except BaseException:
        clean.close()
        raise
    return clean


def _source(file: BinaryIO, secrets: Redactor) -> Iterator[bytes]:
    """Yield a source as one text if it is no longer than one that runs; else, and if it is no UTF-8, in pieces."""
    data = file.read(SOURCE_LIMIT + 1)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or len(data) > SOURCE_LIMIT:
        file.seek(0)
        yield from _texts(file, secrets, _SOURCE)
    else:
        yield secrets.source(text).encode()


def _lines(file: BinaryIO, secrets: Redactor, short: str) -> Iterator[bytes]:
    """Yield the lines of a stream, or notes; after so many that are neither, where no view reads on, the rest is a text."""
    clean_line, place = (_note, short) if short == notes.FILE else (_record, "journal")
    barren = 0
    while barren <= BARREN_LINES and (line := file.readline(_LINE)):
        clean = clean_line(line, secrets)
        barren += clean is None
        yield _text(line, secrets, place) if clean is None else clean
    yield from _texts(file, secrets, place)


def _record(line: bytes, secrets: Redactor) -> bytes | None:
    """Return a line of a stream: as it is where it holds nothing private, nothing where it is no record."""
    item = parse(line.rstrip(b"\n")) if line.endswith(b"\n") else ""
    if isinstance(item, str):
        return None
    if (clean := secrets.item(item)) is item:
        return line
    assert not isinstance(clean, Corrupt | Gap)
    if isinstance(clean, Unknown):
        body = json.dumps({"k": clean.k, "n": clean.n, "t": clean.t, **clean.fields}).encode()
    else:
        body = encode_anything(clean)
    return b"%08x %b\n" % (crc32(body), body)


def _note(line: bytes, secrets: Redactor) -> bytes | None:
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        return None
    clean = secrets.of(plain, notes.FILE)
    return line if clean == plain else json.dumps(clean).encode() + b"\n"


def _texts(file: BinaryIO, secrets: Redactor, place: str) -> Iterator[bytes]:
    """Yield a text in pieces of whole lines."""
    yield from (
        _text(piece, secrets, place)
        for piece in iter(lambda: file.read(_PIECE) + file.readline(_LINE), b"")
    )


def _text(data: bytes, secrets: Redactor, place: str) -> bytes:
    return data if data.isspace() else clean_bytes(data, partial(secrets.of, place=place))
