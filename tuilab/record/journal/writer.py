"""Writes the records of one process to its stream.

The process that writes a stream may run code that closes every descriptor, and whose next files get the lowest numbers that
are free. So the stream has a high one, which they do not get, and is opened again when it turns out to be closed: to ask before
each record where the descriptor stands would take a tenth of it.
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
from tuilab.record.journal.lines import last_number
from tuilab.storage.files import identity, move_to_high_fd, open_regular

_APART = 980  # behind the other descriptors of tuilab that stand apart: a crash is told to a number, whoever has it by then
_MOST = 2**63 - 1
Encode = Callable[[Event], bytes]
Hide = Callable[[Event], Event]


class Writer:
    """Appends records to one stream; safe for threads and signal handlers, useless after a fork (one process, one stream)."""

    def __init__(
        self, path: Path, hide: Hide | None = None, *, goes_on: bool = False, ahead_ns: int = 0
    ) -> None:
        """Begin a stream; or go on with that of a process that has ended. The clock of its run may be ahead of ours."""
        new = 0 if goes_on else os.O_CREAT | os.O_EXCL
        flags = os.O_WRONLY | os.O_APPEND | new | os.O_CLOEXEC | os.O_NOFOLLOW
        self._path = path
        self._ahead_ns = ahead_ns
        self._hide = hide  # takes out what must not be recorded
        self._fd = move_to_high_fd(os.open(path, flags, 0o600), _APART)
        self._file = identity(os.fstat(self._fd))
        self._position = os.lseek(
            self._fd, 0, os.SEEK_END
        )  # where the last record ended: a shorter file is another one
        self._lock = threading.RLock()
        self._is_busy = False
        self._waiting: list[
            tuple[Event, Encode]
        ] = []  # from a signal handler that ran in the middle of a record
        self._next = last_number(path) + 1 if goes_on else 0
        self._is_torn = goes_on  # its last line may not be whole, and an empty one does no harm
        self.lost = 0
        self.trouble = ""
        os.register_at_fork(after_in_child=self.disown)

    def append(self, event: Event, encode: Encode = encode_anything) -> bool:
        """Write one record and return whether it is on its way to the disk.

        What `encode` refuses with an exception is not written, and nothing is missed.
        """
        with self._lock:
            if self._is_busy:
                return self._append_later(event, encode)
            self._is_busy = True
            try:
                event.n, event.t = self._next, monotonic_ns() + self._ahead_ns
                body = encode(event)
                if self._hide and (shown := self._hide(event)) is not event:
                    body = encode_anything(shown)
                line = b"%08x %b\n" % (crc32(body), body)
                if len(line) > LINE_LIMIT:
                    return self._drop(event, encode)
                self._next += 1
                return self._write(line)
            finally:
                self._is_busy = False
                while self._waiting:
                    self.append(*self._waiting.pop(0))

    def miss(self, count: int, why: str) -> None:
        """Count records of which there was nothing, or not all, to be written."""
        if count:
            self.lost += count
            self.trouble = why

    def now_ns(self) -> int:
        """Return the time of the run."""
        return monotonic_ns() + self._ahead_ns

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

    def _append_later(self, event: Event, encode: Encode) -> bool:
        """Keep what a signal handler appends in the middle of a record until its end, or refuse it here."""
        event.n = event.t = _MOST
        encode(event)
        self._waiting.append((event, encode))
        return True

    def _write(self, line: bytes) -> bool:
        """Write a line to the stream, which is opened again where somebody has closed it."""
        if self._is_torn:
            line = b"\n" + line
        try:
            try:
                written = os.write(self._fd, line)
            except OSError as problem:
                if problem.errno != errno.EBADF:
                    raise
                self._find_stream()
                written = os.write(self._fd, line)
        except OSError as problem:
            return self._lose(problem.strerror or str(problem))
        self._position += written
        self._is_torn = written != len(line)
        return not self._is_torn or self._lose("the disk is full")

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
            if (
                identity(seen) != self._file or seen.st_size < self._position
            ):  # what is removed leaves its number to others
                os.close(found)
                raise OSError(errno.ESTALE, "the file of the stream was replaced")
            self._fd = move_to_high_fd(
                found, _APART
            )  # the number that it had may belong to somebody else
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
            self.trouble = (
                self.trouble or f"the disk did not confirm what was written: {problem.strerror}"
            )
            return False
        return True

    def _lose(self, why: str) -> bool:
        if self._fd < 0:
            raise RuntimeError(
                "the lab can only be used by the process that runs the scenario, and not after it ended"
            )
        self.lost += 1
        self.trouble = why
        return False
