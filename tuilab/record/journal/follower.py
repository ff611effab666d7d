"""Reads all streams of a run while they grow and new ones appear."""

import errno
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tuilab.record.journal.lines import Item
from tuilab.record.journal.reader import Reader

_MOST_OPEN = 16  # streams of a run that are open at a time
_MOST_READ = 64  # streams in one portion


@dataclass
class Portion:
    """The items that a follower read, by stream.

    Iterating yields (stream, item), with the records in the order of their time.
    """

    streams: list[tuple[str, list[Item]]]

    def __bool__(self) -> bool:
        return bool(self.streams)

    def __iter__(self) -> Iterator[tuple[str, Item]]:
        pairs: list[tuple[str, Item]] = []
        for stream, items in self.streams:
            pairs += [(stream, item) for item in items]
        if len(self.streams) > 1:
            pairs.sort(key=lambda pair: getattr(pair[1], "t", 0))
        return iter(pairs)


class Follower:
    """Follows all streams of one run by polling, because inotify does not work on network disks.

    Of many streams only a few are open at a time: those that had new items last.
    """

    def __init__(self, run_dir: Path) -> None:
        self._folder = run_dir / "journal"
        self._readers: dict[str, Reader] = {}
        self._open: dict[str, Reader] = {}  # the one that had new items last is at the end
        self._next = 0  # the reader that is first in the next portion
        self.unreadable: dict[str, str] = {}  # by stream: why it cannot be opened

    @property
    def pending_bytes(self) -> int:
        return sum(self.pending_by_stream.values())

    @property
    def pending_by_stream(self) -> dict[str, int]:
        """The bytes after the last line feed of each stream that has such bytes."""
        pending = {}
        for reader in self._readers.values():
            if reader.pending_bytes:
                pending[reader.stream] = reader.pending_bytes
        return pending

    @property
    def bytes_read(self) -> tuple[int, int]:
        """The bytes that were read, and all bytes that there were at the last poll."""
        bytes_read = sum(reader.bytes_read for reader in self._readers.values())
        bytes_seen = sum(reader.bytes_seen for reader in self._readers.values())
        return bytes_read, bytes_seen

    def read(self) -> Portion:
        """Return new items: at most a chunk of each stream, and not of too many streams."""
        self._find_new_streams()
        readers = list(self._readers.values())
        portion = Portion([])
        for reader in readers[self._next :] + readers[: self._next]:
            items = reader.read()
            if items:
                portion.streams.append((reader.stream, items))
            if reader.is_open and (items or reader.stream not in self._open):
                self._keep_open(reader)
            if len(portion.streams) == _MOST_READ:
                self._next = readers.index(reader) + 1
                return portion
        self._next = 0
        return portion

    def stream_sizes(self) -> dict[str, int]:
        """Return how many bytes each known stream has by now."""
        return {name: reader.poll_size() for name, reader in self._readers.items()}

    def has_read(self, sizes: Mapping[str, int]) -> bool:
        """Say whether so many bytes of each stream have been read."""
        return all(self._readers[name].bytes_read >= size for name, size in sizes.items())

    def close(self) -> None:
        """Close the open streams; reading opens them again."""
        while self._open:
            _, reader = self._open.popitem()
            reader.close()

    def _keep_open(self, reader: Reader) -> None:
        """Keep a stream open; if they are too many, close the one that was silent longest."""
        self._open.pop(reader.stream, None)
        self._open[reader.stream] = reader
        if len(self._open) > _MOST_OPEN:
            silent = next(iter(self._open))
            self._open.pop(silent).close()

    def _find_new_streams(self) -> None:
        with os.scandir(self._folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".jsonl"))
        for name in names:
            stream = name.removesuffix(".jsonl")
            if stream in self._readers or stream in self.unreadable:
                continue
            try:
                reader = Reader(self._folder / name)
            except OSError as problem:
                if problem.errno in (errno.EMFILE, errno.ENFILE):
                    raise  # too many open files: the stream itself is fine
                self.unreadable[stream] = problem.strerror or "not readable"
            else:
                self._readers[stream] = reader
                self._keep_open(reader)
