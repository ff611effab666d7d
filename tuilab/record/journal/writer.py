"""Writes the records of one process to its stream.

The process may run code that closes all descriptors, and its next files get the lowest free
numbers. So the stream has a high number, which they do not get. If it turns out to be closed, it is
opened again: checking the descriptor before each record would cost a tenth of the record.
"""

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic_ns
from zlib import crc32

from tuilab.record.encoding import LINE_LIMIT, encode_anything, refusal
from tuilab.record.events import Event
from tuilab.record.journal.lines import next_number
from tuilab.storage.files import identity, move_to_high_fd, open_regular

# After the other high descriptors of tuilab: a crash report goes to a number, whatever file has it.
_APART = 980
_GREATEST = 2**63 - 1
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
Encode = Callable[[Event], bytes]
Hide = Callable[[Event], Event]


class Writer:
    """Appends records to one stream; safe for threads and signal handlers.

    It cannot be used after a fork: each process has its own stream.
    """

    def __init__(
        self, path: Path, hide: Hide | None = None, *, goes_on: bool = False, ahead_ns: int = 0
    ) -> None:
        """Begin a stream, or continue that of a process that has ended.

        `ahead_ns` is how far the clock of the run is ahead of ours.
        """
        flags = _FLAGS if goes_on else _FLAGS | os.O_CREAT | os.O_EXCL
        self._path = path
        self._ahead_ns = ahead_ns
        self._hide = hide  # removes secrets from a record
        self._fd = move_to_high_fd(os.open(path, flags, 0o600), _APART)
        self._file = identity(os.fstat(self._fd))
        # The end of the last record. A file that is shorter is another one.
        self._position = os.lseek(self._fd, 0, os.SEEK_END)
        self._lock = threading.RLock()
        self._is_busy = False
        # from signal handlers that ran in the middle of a record
        self._waiting: list[tuple[Event, Encode]] = []
        self._next = next_number(path) if goes_on else 0
        # True if the last line may be incomplete: a line feed is written first, which does no harm.
        self._is_torn = goes_on
        self.lost = 0  # records that could not be written
        self.trouble = ""  # the last reason
        os.register_at_fork(after_in_child=self.disown)

    def append(self, event: Event, encode: Encode = encode_anything) -> bool:
        """Write one record and return whether it is on its way to the disk.

        If `encode` refuses a record with an exception, it is not written, and leaves no gap.
        """
        with self._lock:
            if self._is_busy:
                return self._append_later(event, encode)
            self._is_busy = True
            try:
                event.n, event.t = self._next, monotonic_ns() + self._ahead_ns
                body = encode(event)
                if self._hide:
                    cleaned = self._hide(event)
                    if cleaned is not event:
                        body = encode_anything(cleaned)
                line = b"%08x %b\n" % (crc32(body), body)
                if len(line) > LINE_LIMIT:
                    return self._drop(event, encode)
                self._next += 1
                return self._write(line)
            finally:
                self._is_busy = False
                while self._waiting:
                    self.append(*self._waiting.pop(0))

    def miss(self, count: int, reason: str) -> None:
        """Count records whose values never came, or not all of them, as lost."""
        if count:
            self.lost += count
            self.trouble = reason

    def now_ns(self) -> int:
        """Return the present on the clock of the run."""
        return monotonic_ns() + self._ahead_ns

    @property
    def is_busy(self) -> bool:
        """Whether this is a signal handler in the middle of a record; its records come after it."""
        with self._lock:
            return self._is_busy

    @property
    def written(self) -> int:
        """The number of records so far."""
        return self._next

    def sync(self) -> bool:
        """Have the disk store the stream; return whether it did, else `trouble` has the reason."""
        try:
            self._find_stream()
        except OSError as problem:
            self.trouble = self.trouble or problem.strerror or str(problem)
            return False
        return self._sync(self._fd)

    def sync_all(self) -> bool:
        """Have the disk store all streams of the run: their writers may have been killed before."""
        is_stored = True
        try:
            streams = list(self._path.parent.glob("*.jsonl"))
        except OSError as problem:
            self.trouble = self.trouble or f"the streams could not be asked for: {problem.strerror}"
            return False
        for path in streams:
            with suppress(OSError), open(open_regular(path), "rb") as stream:
                is_stored = self._sync(stream.fileno()) and is_stored
        return is_stored

    def is_in_place(self) -> bool:
        """Say whether the path still leads to the stream: writing to a removed file succeeds."""
        try:
            return identity(os.lstat(self._path)) == self._file
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # the disk does not answer now, which says nothing about the file

    def disown(self) -> None:
        """Forget the stream: the child of a fork must not write to the stream of its parent."""
        self._fd = -1
        self._lock = threading.RLock()
        self._is_busy = False

    def close(self) -> None:
        if self._is_open():
            os.close(self._fd)
        self._fd = -1

    def _append_later(self, event: Event, encode: Encode) -> bool:
        """Keep the record of a signal handler until the interrupted record is written.

        It is encoded here, with the greatest number and time, so that it is refused now or never.
        """
        event.n = event.t = _GREATEST
        encode(event)
        self._waiting.append((event, encode))
        return True

    def _write(self, line: bytes) -> bool:
        """Write a line and return whether it was written whole."""
        if self._is_torn:
            line = b"\n" + line
        try:
            try:
                written = os.write(self._fd, line)
            except OSError as problem:
                if problem.errno != errno.EBADF:
                    raise
                self._find_stream()  # the process has closed the descriptor
                written = os.write(self._fd, line)
        except OSError as problem:
            return self._lose(problem.strerror or str(problem))
        self._position += written
        self._is_torn = written != len(line)
        return not self._is_torn or self._lose("the disk is full")

    def _drop(self, event: Event, encode: Encode) -> bool:
        """Refuse a record that is too long; a record of tuilab itself is lost, and counted."""
        if encode is not encode_anything:
            raise refusal(event)
        self._next += 1
        return self._lose(f"a {type(event).__name__} record is too long")

    def _find_stream(self) -> None:
        """Open the stream again if its descriptor is closed; OSError if the file is gone."""
        if self._fd < 0:
            raise OSError(errno.EBADF, "the stream is closed")
        if not self._is_open():
            fd = os.open(self._path, _FLAGS)
            stat = os.fstat(fd)
            # A removed file leaves its inode to others, so the size is compared as well.
            if identity(stat) != self._file or stat.st_size < self._position:
                os.close(fd)
                raise OSError(errno.ESTALE, "the file of the stream was replaced")
            # The old number is not closed: it may belong to another file by now.
            self._fd = move_to_high_fd(fd, _APART)
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
            reason = f"the disk did not confirm what was written: {problem.strerror}"
            self.trouble = self.trouble or reason
            return False
        return True

    def _lose(self, reason: str) -> bool:
        """Count a record as lost."""
        if self._fd < 0:
            raise RuntimeError(
                "the lab can only be used by the process that runs the scenario, "
                "and not after it ended"
            )
        self.lost += 1
        self.trouble = reason
        return False
