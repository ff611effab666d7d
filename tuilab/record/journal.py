"""The journal: what a run leaves on disk, and the only thing that views know of it.

One append-only stream per writing process. One record = one line = one `write(2)` on an O_APPEND descriptor:

    crc32-hex SP compact-JSON LF

A kill of anything at any time loses nothing that was written. A line cut short is repaired by the next one, which begins
with a line feed. Non-finite floats travel as "nan", "inf", "-inf" and come back as floats.

The process that writes a stream may run code that closes every descriptor, and whose next file gets the number of the stream.
So each record is written only where the last one ended: that costs a tenth of a record, a look at the file itself half of one.
"""

import errno
import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from tuilab.files import identity, open_regular
from tuilab.record.encoding import LINE_LIMIT, encode_anything, refusal
from tuilab.record.events import KINDS, Event, Record, Unknown, is_newer, is_shallow

_CHUNK = 64 * 1024  # what is made of it fits the processor's cache; larger ones take longer
_HELD = 16  # streams of a run that are open at a time
_TOGETHER = 64  # streams that are read at a time
_MOST = 2**63 - 1
_BARREN_LIMIT = 64 * 1024 * 1024  # a stream with so many bytes and no record is not read on

_decode_record = msgspec.json.Decoder(Record, strict=False).decode
_decode_records = msgspec.json.Decoder(list[Record], strict=False).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode
_NOT_A_RECORD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Encode = Callable[[Event], bytes]


class Writer:
    """Appends records to one stream; safe for threads and signal handlers, useless after a fork (one process, one stream)."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._path = path
        self._fd = os.open(path, flags, 0o600)
        self._file = identity(os.fstat(self._fd))
        self._position = 0  # where the last record ended: in another file a descriptor stands elsewhere
        self._lock = threading.RLock()
        self._is_busy = False
        self._waiting: list[tuple[Event, Encode]] = []  # from a signal handler that ran in the middle of a record
        self._next = 0
        self._is_torn = False
        self.lost = 0
        self.trouble = ""
        os.register_at_fork(after_in_child=self.disown)

    def append(self, event: Event, encode: Encode = encode_anything) -> bool:
        """Write one record and return whether it is on its way to the disk.

        What `encode` refuses with an exception is not written, and nothing is missed.
        """
        with self._lock:
            if self._is_busy:
                event.n = event.t = _MOST  # it is refused here, not in the middle of what it interrupts
                encode(event)
                self._waiting.append((event, encode))
                return True
            try:
                return self._write(event, encode)
            finally:
                while self._waiting:
                    self._write(*self._waiting.pop(0))

    def miss(self, count: int, why: str) -> None:
        """Count records of which there was nothing, or not all, to be written."""
        if count:
            self.lost += count
            self.trouble = why

    @property
    def is_busy(self) -> bool:
        """Whether this is a signal handler that ran in the middle of a record: what it appends is written after it."""
        with self._lock:
            return self._is_busy

    @property
    def written(self) -> int:
        """How many records there have been."""
        return self._next

    def sync(self) -> bool:
        """Ask the disk to keep what was written; one that cannot says so in `trouble`."""
        try:
            self._find_stream()
        except OSError as problem:
            self.trouble = self.trouble or problem.strerror or str(problem)
            return False
        return self._sync(self._fd)

    def sync_all(self) -> bool:
        """Ask the disk to keep all streams of the run: who wrote them may have been killed before asking."""
        is_kept = True
        try:
            streams = list(self._path.parent.glob("*.jsonl"))
        except OSError as problem:
            self.trouble = self.trouble or f"the streams could not be asked for: {problem.strerror}"
            return False
        for path in streams:
            with suppress(OSError), open(open_regular(path), "rb") as stream:
                is_kept = self._sync(stream.fileno()) and is_kept
        return is_kept

    def is_in_place(self) -> bool:
        """Say whether the stream is still what its name leads to: writing into a removed file succeeds silently."""
        try:
            return identity(os.lstat(self._path)) == self._file
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # a disk that does not answer now

    def disown(self) -> None:
        """Forget the stream: the child of a fork must not write into its parent's."""
        self._fd = -1
        self._lock = threading.RLock()
        self._is_busy = False

    def close(self) -> None:
        if self._is_open():
            os.close(self._fd)
        self._fd = -1

    def _write(self, event: Event, encode: Encode) -> bool:
        self._is_busy = True
        try:
            event.n, event.t = self._next, monotonic_ns()
            body = encode(event)
            line = b"%08x %b\n" % (crc32(body), body)
            if len(line) > LINE_LIMIT:
                return self._drop(event, encode)
            self._next += 1
            if self._is_torn:
                line = b"\n" + line
            try:
                is_there = os.lseek(self._fd, 0, os.SEEK_CUR) == self._position
            except OSError:
                is_there = False
            if not is_there:
                self._find_stream()
            written = os.write(self._fd, line)
            self._position += written
            self._is_torn = written != len(line)
            return not self._is_torn or self._lose("the disk is full")
        except OSError as problem:
            return self._lose(problem.strerror or str(problem))
        finally:
            self._is_busy = False

    def _drop(self, event: Event, encode: Encode) -> bool:
        """Refuse what is too long; but what tuilab itself has to say is lost, and counted."""
        if encode is not encode_anything:
            raise refusal(event)
        self._next += 1
        return self._lose(f"a {type(event).__name__} record is too long")

    def _find_stream(self) -> None:
        """Open the stream again unless the descriptor is still its own; OSError where it is not there any more."""
        if self._fd < 0:
            raise OSError(errno.EBADF, "the stream is closed")
        if not self._is_open():
            found = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
            seen = os.fstat(found)
            if identity(seen) != self._file or seen.st_size < self._position:  # what is removed leaves its number to others
                os.close(found)
                raise OSError(errno.ESTALE, "the file of the stream was replaced")
            self._fd = found  # the number that it had belongs to somebody else
        self._position = os.lseek(self._fd, 0, os.SEEK_END)

    def _is_open(self) -> bool:
        try:
            return identity(os.fstat(self._fd)) == self._file
        except OSError:
            return False

    def _sync(self, fd: int) -> bool:
        try:
            os.fdatasync(fd)
        except OSError as problem:
            self.trouble = self.trouble or f"the disk did not confirm what was written: {problem.strerror}"
            return False
        return True

    def _lose(self, why: str) -> bool:
        if self._fd < 0:
            raise RuntimeError("the lab can only be used by the process that runs the scenario, and not after it ended")
        self.lost += 1
        self.trouble = why
        return False


class Corrupt(NamedTuple):
    """A line that is not a record; it was skipped."""

    stream: str
    offset: int
    reason: str


class Gap(NamedTuple):
    """Records that were written (or tried) and are not here."""

    stream: str
    missing: int


Item = Record | Unknown | Corrupt | Gap


class Reader:
    """Follows one stream: each `read` returns what is new, in order. Closed, it opens again when there is more."""

    def __init__(self, path: Path) -> None:
        self.stream = path.stem
        self._path = path
        self._fd = open_regular(path)
        self._file = identity(os.fstat(self._fd))
        self._offset = 0  # of the first byte not yet turned into items
        self._tail = b""
        self._is_skipping = False  # inside a line too long to be a record
        self._next = 0
        self._is_given_up = False

    @property
    def pending_bytes(self) -> int:
        """Bytes after the last line feed: a record being written, or one cut short by a kill."""
        return len(self._tail)

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    def read(self, limit: int = _CHUNK) -> list[Item]:
        """Return the new items among some more bytes (`limit` at a time); [] at the end (for now)."""
        if self._is_given_up:
            return []
        try:
            seen = os.lstat(self._path)
        except FileNotFoundError:
            return []
        if self._is_other(seen) or (seen.st_size > self._position and self._is_other(self._open_again())):
            return self._give_up("the file was replaced or cut short; the rest is not read")
        return self._read(limit) if seen.st_size > self._position else []

    def close(self) -> None:
        if self.is_open:
            os.close(self._fd)
            self._fd = -1

    @property
    def _position(self) -> int:
        """Where in the file the next byte to be read is."""
        return self._offset + len(self._tail)

    def _is_other(self, seen: os.stat_result) -> bool:
        """Say whether a file cannot be the one that was read so far."""
        return identity(seen) != self._file or seen.st_size < self._position

    def _open_again(self) -> os.stat_result:
        if not self.is_open:
            self._fd = open_regular(self._path)
            os.lseek(self._fd, self._position, os.SEEK_SET)
        return os.fstat(self._fd)

    def _read(self, limit: int) -> list[Item]:
        for _ in range(_BARREN_LIMIT // limit):
            chunk = os.read(self._fd, limit)
            if not chunk:
                return []
            lines = (self._tail + chunk).split(b"\n")
            self._tail = lines.pop()
            if items := self._take_whole(lines) or self._take_each(lines):
                return items
        return self._give_up(f"no record in {_BARREN_LIMIT} bytes; the rest is not read")

    def _give_up(self, why: str) -> list[Item]:
        self.close()
        self._is_given_up = True
        return [Corrupt(self.stream, self._offset, why)]

    def _take_whole(self, lines: list[bytes]) -> list[Item]:
        """Decode many lines at once, which is several times as fast; [] when anything at all is out of order."""
        if self._is_skipping or not lines or len(self._tail) > LINE_LIMIT:
            return []
        bodies = [line[9:] for line in lines]
        if not _are_intact(lines, bodies):
            return []
        try:
            records: list[Any] = _decode_records(b"[%b]" % b",".join(bodies))
        except _NOT_A_RECORD:
            return []
        if [record.n for record in records] != list(range(self._next, self._next + len(lines))):
            return []
        self._next += len(lines)
        self._offset += sum(map(len, lines)) + len(lines)
        return records

    def _take_each(self, lines: list[bytes]) -> list[Item]:
        items: list[Item] = []
        for line in lines:
            self._take(line, items)
            self._offset += len(line) + 1
        self._bound_tail(items)
        return items

    def _take(self, line: bytes, items: list[Item]) -> None:
        if self._is_skipping:
            self._is_skipping = False
            return
        record = _parse(line)
        if isinstance(record, str):
            if line:  # an empty line is the repair after a cut that fell on a line's end
                items.append(Corrupt(self.stream, self._offset, record))
            return
        if record.n > self._next:
            items.append(Gap(self.stream, record.n - self._next))
        elif record.n < self._next:
            items.append(Corrupt(self.stream, self._offset, f"sequence number {record.n} again"))
            return
        self._next = record.n + 1
        items.append(self._judge(record) if isinstance(record, Unknown) else record)

    def _judge(self, record: Unknown) -> Unknown | Corrupt:
        """Tell a kind that this version does not know from one that it knows but cannot read, which is damage."""
        if record.k not in KINDS or is_newer(record):
            return record
        return Corrupt(self.stream, self._offset, f"a record of the known kind {record.k} that cannot be read")

    def _bound_tail(self, items: list[Item]) -> None:
        """Drop a line that is too long to be a record, so that memory stays bounded."""
        if len(self._tail) <= LINE_LIMIT:
            return
        if not self._is_skipping:
            items.append(Corrupt(self.stream, self._offset, f"line longer than {LINE_LIMIT} bytes"))
        self._is_skipping = True
        self._offset += len(self._tail)
        self._tail = b""


def last_number(path: Path) -> int:
    """Return the number of the last whole record of a stream, -1 where there is none, without reading what is before it."""
    with open(open_regular(path), "rb") as stream:
        stream.seek(max(os.fstat(stream.fileno()).st_size - 2 * LINE_LIMIT, 0))
        *lines, _ = stream.read().split(b"\n")
    records = map(_parse, reversed(lines))
    return next((record.n for record in records if not isinstance(record, str)), -1)


def _are_intact(lines: list[bytes], bodies: list[bytes]) -> bool:
    """Say whether each line begins with the checksum of its body: what `_parse` asks of one, twice as fast for many."""
    heads = b"".join([line[:9] for line in lines])
    if len(heads) != 9 * len(lines) or heads[8::9].strip(b" ") or heads != heads.lower():
        return False
    try:
        return bytes.fromhex(heads.decode()) == struct.pack(f">{len(bodies)}I", *map(crc32, bodies))
    except ValueError:
        return False


def _parse(line: bytes) -> Record | Unknown | str:
    """Return the record in a line, or why there is none."""
    body = line[9:]
    if line[:9] != b"%08x " % crc32(body):
        return "checksum does not match"
    try:
        record: Record = _decode_record(body)
        return record
    except _NOT_A_RECORD:
        return _parse_unknown(body)


def _parse_unknown(body: bytes) -> Unknown | str:
    try:
        fields = _decode_any(body)
        unknown = msgspec.convert({"n": fields.pop("n"), "t": fields.pop("t"), "k": fields.pop("k"), "fields": fields}, Unknown)
    except (*_NOT_A_RECORD, KeyError):
        return "not a record"
    return unknown if is_shallow(fields) else "nested too deeply"


@dataclass
class Portion:
    """What a follower read: items by stream, or, iterated, (stream, item) with the records in the order of their time."""

    streams: list[tuple[str, list[Item]]]

    def __bool__(self) -> bool:
        return bool(self.streams)

    def __iter__(self) -> Iterator[tuple[str, Item]]:
        pairs = [(stream, item) for stream, items in self.streams for item in items]
        if len(self.streams) > 1:
            pairs.sort(key=lambda pair: getattr(pair[1], "t", 0))
        return iter(pairs)


class Follower:
    """Follows all streams of one run by polling: inotify says nothing on network file systems.

    Few streams are held open at a time, however many there are: those that gave something last.
    """

    def __init__(self, run_dir: Path) -> None:
        self._folder = run_dir / "journal"
        self._readers: dict[str, Reader] = {}
        self._held: dict[str, Reader] = {}  # that are open, the one that gave something last at the end
        self._next = 0  # the reader that is first in the next portion
        self.unreadable: dict[str, str] = {}

    @property
    def pending_bytes(self) -> int:
        return sum(reader.pending_bytes for reader in self._readers.values())

    def read(self) -> Portion:
        """Return what is new, at most a chunk of each stream and not of too many of them; nothing when there is nothing."""
        self._open_new()
        readers = list(self._readers.values())
        found = Portion([])
        for reader in readers[self._next :] + readers[: self._next]:
            if items := reader.read():
                found.streams.append((reader.stream, items))
            if reader.is_open and (items or reader.stream not in self._held):
                self._hold(reader)
            if len(found.streams) == _TOGETHER:
                self._next = readers.index(reader) + 1
                return found
        self._next = 0
        return found

    def close(self) -> None:
        """Let go of what is open; reading opens it again."""
        while self._held:
            self._held.popitem()[1].close()

    def _hold(self, reader: Reader) -> None:
        """Keep a stream open, and close the one that has been silent longest when they are too many."""
        self._held.pop(reader.stream, None)
        self._held[reader.stream] = reader
        if len(self._held) > _HELD:
            self._held.pop(next(iter(self._held))).close()

    def _open_new(self) -> None:
        with os.scandir(self._folder) as entries:
            names = sorted(e.name for e in entries if e.name.endswith(".jsonl"))
        for name in names:
            stream = name.removesuffix(".jsonl")
            if stream in self._readers or stream in self.unreadable:
                continue
            try:
                self._readers[stream] = Reader(self._folder / name)
            except OSError as problem:
                if problem.errno in (errno.EMFILE, errno.ENFILE):
                    raise  # nothing is wrong with the stream
                self.unreadable[stream] = problem.strerror or "not readable"
            else:
                self._hold(self._readers[stream])
