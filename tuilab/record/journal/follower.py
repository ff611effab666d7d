"""Reads all streams of a run as they grow and as new ones come."""

import errno
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tuilab.record.journal.lines import Item
from tuilab.record.journal.reader import Reader

_HELD = 16  # streams of a run that are open at a time
_TOGETHER = 64  # streams that are read at a time


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
        self._held: dict[
            str, Reader
        ] = {}  # that are open, the one that gave something last at the end
        self._next = 0  # the reader that is first in the next portion
        self.unreadable: dict[str, str] = {}

    @property
    def pending_bytes(self) -> int:
        return sum(reader.pending_bytes for reader in self._readers.values())

    @property
    def bytes_read(self) -> tuple[int, int]:
        """How many bytes were read, of how many that there were at the last look."""
        readers = self._readers.values()
        return sum(reader.bytes_read for reader in readers), sum(
            reader.bytes_seen for reader in readers
        )

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

    def there(self) -> dict[str, int]:
        """Return how many bytes each known stream has by now."""
        return {name: reader.look() for name, reader in self._readers.items()}

    def has_read(self, there: Mapping[str, int]) -> bool:
        """Say whether so many bytes of each stream need no more reading."""
        return all(self._readers[name].bytes_read >= count for name, count in there.items())

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
