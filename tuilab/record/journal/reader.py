"""Reads one stream as it grows."""

import os
from contextlib import suppress
from typing import Any

from tuilab.record.encoding import LINE_LIMIT
from tuilab.record.events import KINDS, Unknown, is_newer
from tuilab.record.journal.lines import (
    NOT_A_RECORD,
    Corrupt,
    Gap,
    Item,
    are_intact,
    decode_records,
    parse,
)
from tuilab.storage.files import identity, open_with_status

_CHUNK = 64 * 1024  # what is made of it fits the processor's cache; larger ones take longer
_BARREN_LIMIT = 64 * 1024 * 1024  # a stream with so many bytes and no record is not read on
BARREN_LINES = 100_000  # and one with so many lines that are none: a thousand times as many as any harm to a disk makes


class Reader:
    """Follows one stream: each `read` returns what is new, in order. Closed, it opens again when there is more."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self.stream = os.path.basename(self._path).removesuffix(".jsonl")
        self._fd, seen = open_with_status(path)
        self._file, self.bytes_seen = identity(seen), seen.st_size
        self._offset = 0  # of the first byte not yet turned into items
        self._position = 0  # of the next byte to be read
        self._tail = b""
        self._is_skipping = False  # inside a line too long to be a record
        self._next = 0
        self._barren = 0  # lines that are no record
        self._is_given_up = False

    @property
    def pending_bytes(self) -> int:
        """Bytes after the last line feed: a record being written, or one cut short by a kill."""
        return self._position - self._offset

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
        self.bytes_seen = seen.st_size
        if self._is_other(seen) or (
            seen.st_size > self._position and self._is_other(self._open_again())
        ):
            return self._give_up("the file was replaced or cut short; the rest is not read")
        return self._read(limit) if seen.st_size > self._position else []

    def close(self) -> None:
        if self.is_open:
            os.close(self._fd)
            self._fd, self._tail = -1, b""  # many may wait with half a record each

    def look(self) -> int:
        """Return how many bytes there are now; nothing is read."""
        with suppress(FileNotFoundError):
            self.bytes_seen = os.lstat(self._path).st_size
        return self.bytes_seen

    @property
    def bytes_read(self) -> int:
        """How many of the bytes that were seen need no more reading."""
        return self.bytes_seen if self._is_given_up else self._position

    def _is_other(self, seen: os.stat_result) -> bool:
        """Say whether a file cannot be the one that was read so far."""
        return identity(seen) != self._file or seen.st_size < self._position

    def _open_again(self) -> os.stat_result:
        if not self.is_open:
            self._fd, seen = open_with_status(self._path)
            os.lseek(self._fd, self._offset, os.SEEK_SET)
            return seen
        return os.fstat(self._fd)

    def _read(self, limit: int) -> list[Item]:
        for _ in range(_BARREN_LIMIT // limit):
            chunk = os.read(
                self._fd, min(limit, self.bytes_seen - self._position)
            )  # room for more takes time to make
            if not chunk:
                return []
            self._position = self._offset + len(self._tail) + len(chunk)
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
        if not are_intact(lines, bodies):
            return []
        try:
            records: list[Any] = decode_records(b"[%b]" % b",".join(bodies))
        except NOT_A_RECORD:
            return []
        if [record.n for record in records] != list(range(self._next, self._next + len(lines))):
            return []
        self._next += len(lines)
        self._offset += sum(map(len, lines)) + len(lines)
        return records

    def _take_each(self, lines: list[bytes]) -> list[Item]:
        items: list[Item] = []
        for line in lines:
            if (
                line or self._is_skipping
            ):  # an empty line is the repair after a cut that fell on a line's end
                self._take(line, items)
            self._offset += len(line) + 1
        self._bound_tail(items)
        self._barren += len(lines) - sum(not isinstance(item, Corrupt | Gap) for item in items)
        if self._barren > BARREN_LINES:
            items += self._give_up(
                f"more than {BARREN_LINES} lines are no records; the rest is not read"
            )
        return items

    def _take(self, line: bytes, items: list[Item]) -> None:
        if self._is_skipping:
            self._is_skipping = False
            return
        record = parse(line)
        if isinstance(record, str):
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
        return Corrupt(
            self.stream, self._offset, f"a record of the known kind {record.k} that cannot be read"
        )

    def _bound_tail(self, items: list[Item]) -> None:
        """Drop a line that is too long to be a record, so that memory stays bounded."""
        if len(self._tail) <= LINE_LIMIT:
            return
        if not self._is_skipping:
            items.append(Corrupt(self.stream, self._offset, f"line longer than {LINE_LIMIT} bytes"))
        self._is_skipping = True
        self._offset += len(self._tail)
        self._tail = b""
