"""Reads one stream while it grows."""

import os
from contextlib import suppress
from typing import Any

from tuilab.record.encoding import LINE_LIMIT
from tuilab.record.events import KINDS, Unknown, is_newer
from tuilab.record.journal.lines import (
    CUT,
    NOT_A_RECORD,
    Corrupt,
    Gap,
    Item,
    are_intact,
    decode_records,
    parse,
)
from tuilab.storage.files import identity, open_with_status

_CHUNK = 64 * 1024  # bytes; the records of a larger chunk do not fit the processor's cache
_BARREN_LIMIT = 64 * 1024 * 1024  # after so many bytes without a record, reading stops
# After so many lines that are no records, reading stops. A damaged disk makes a thousandth of them.
BARREN_LINES = 100_000


class Reader:
    """Follows one stream: each `read` returns the new items, in order.

    A closed stream is opened again when there is more to read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self.stream = os.path.basename(self._path).removesuffix(".jsonl")
        self._fd, stat = open_with_status(path)
        self._file = identity(stat)
        self.bytes_seen = stat.st_size
        self._offset = 0  # of the first byte that is not yet turned into items
        self._position = 0  # of the next byte to be read
        self._tail = b""
        self._is_skipping = False  # inside a line too long to be a record
        self._next = 0
        self._cut_offsets: list[int] = []  # of cut lines since the last record
        self._barren = 0  # lines that were no records
        self._is_given_up = False

    @property
    def pending_bytes(self) -> int:
        """Bytes at the end without a record: it is being written, or was cut short."""
        begin = self._cut_offsets[0] if self._cut_offsets else self._offset
        return self._position - begin

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    def read(self, limit: int = _CHUNK) -> list[Item]:
        """Return the items of the next bytes (`limit` at a time); [] at the end, for now."""
        if self._is_given_up:
            return []
        try:
            stat = os.lstat(self._path)
        except FileNotFoundError:
            return []
        self.bytes_seen = stat.st_size
        is_other = self._is_other(stat)
        has_more = stat.st_size > self._position
        if has_more and not is_other:
            is_other = self._is_other(self._stat_open())
        if is_other:
            return self._give_up("the file was replaced or cut short; the rest is not read")
        return self._read(limit) if has_more else []

    def close(self) -> None:
        if self.is_open:
            os.close(self._fd)
            self._fd = -1
            self._tail = b""  # not kept: each of many streams may have half a record

    def poll_size(self) -> int:
        """Return how many bytes there are now, without reading them."""
        with suppress(FileNotFoundError):
            self.bytes_seen = os.lstat(self._path).st_size
        return self.bytes_seen

    @property
    def bytes_read(self) -> int:
        """How many of the polled bytes need no more reading."""
        return self.bytes_seen if self._is_given_up else self._position

    def _is_other(self, stat: os.stat_result) -> bool:
        """Say whether a file cannot be the one that was read so far."""
        return identity(stat) != self._file or stat.st_size < self._position

    def _stat_open(self) -> os.stat_result:
        """Return the state of the open file; open it first if it is closed."""
        if self.is_open:
            return os.fstat(self._fd)
        self._fd, stat = open_with_status(self._path)
        os.lseek(self._fd, self._offset, os.SEEK_SET)
        return stat

    def _read(self, limit: int) -> list[Item]:
        for _ in range(_BARREN_LIMIT // limit):
            # os.read allocates all the bytes that it is asked for, so it is asked for no more.
            chunk = os.read(self._fd, min(limit, self.bytes_seen - self._position))
            if not chunk:
                return []
            self._position = self._offset + len(self._tail) + len(chunk)
            lines = (self._tail + chunk).split(b"\n")
            self._tail = lines.pop()
            items = self._decode_all(lines) or self._decode_each(lines)
            if items:
                return items
        return self._give_up(f"no record in {_BARREN_LIMIT} bytes; the rest is not read")

    def _give_up(self, reason: str) -> list[Item]:
        self.close()
        self._is_given_up = True
        return [Corrupt(self.stream, self._offset, reason)]

    def _decode_all(self, lines: list[bytes]) -> list[Item]:
        """Decode many lines at once, which is several times as fast; [] if any line is damaged."""
        if self._is_skipping or self._cut_offsets or not lines or len(self._tail) > LINE_LIMIT:
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

    def _decode_each(self, lines: list[bytes]) -> list[Item]:
        items: list[Item] = []
        for line in lines:
            # An empty line repairs a line that was cut right at its end.
            if line or self._is_skipping:
                self._decode(line, items)
            self._offset += len(line) + 1
        self._bound_tail(items)
        records = sum(not isinstance(item, Corrupt | Gap) for item in items)
        self._barren += len(lines) - records
        if self._barren > BARREN_LINES:
            items += self._give_up(
                f"more than {BARREN_LINES} lines are no records; the rest is not read"
            )
        return items

    def _decode(self, line: bytes, items: list[Item]) -> None:
        """Add the record of a line to the items, or what is wrong with the line."""
        if self._is_skipping:
            self._is_skipping = False
            return
        record = parse(line)
        if record == CUT:
            self._cut_offsets.append(self._offset)  # the next record decides what it was
            return
        if isinstance(record, str):
            items.append(Corrupt(self.stream, self._offset, record))
            return
        if record.n < self._next:
            items.append(Corrupt(self.stream, self._offset, f"sequence number {record.n} again"))
            return
        missing = record.n - self._next
        # A cut line that is no missing record was put there.
        for offset in self._cut_offsets[missing:]:
            items.append(Corrupt(self.stream, offset, CUT))
        self._cut_offsets.clear()
        if missing:
            items.append(Gap(self.stream, missing))
        self._next = record.n + 1
        items.append(self._check_kind(record) if isinstance(record, Unknown) else record)

    def _check_kind(self, record: Unknown) -> Unknown | Corrupt:
        """Return a record of an unknown kind; a known kind that cannot be read is damage."""
        if record.k not in KINDS or is_newer(record):
            return record
        reason = f"a record of the known kind {record.k} that cannot be read"
        return Corrupt(self.stream, self._offset, reason)

    def _bound_tail(self, items: list[Item]) -> None:
        """Drop a line that is too long to be a record, so that memory stays bounded."""
        if len(self._tail) <= LINE_LIMIT:
            return
        if not self._is_skipping:
            items.append(Corrupt(self.stream, self._offset, f"line longer than {LINE_LIMIT} bytes"))
        self._is_skipping = True
        self._offset += len(self._tail)
        self._tail = b""
