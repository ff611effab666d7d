"""Keep what a run prints: the first and last bytes, and the count of those between."""

import os
from pathlib import Path

from tuilab.record.events import OutputCaptured
from tuilab.record.secrets import Clean, clean_bytes

HEAD = 512 * 1024  # bytes
TAIL = 512 * 1024  # bytes
_LINE = 64 * 1024  # bytes of an unfinished line that are held back at most
_LONGEST_SECRET = 4 * 1024  # bytes; the end of a longer line is held back, as it may begin a secret


class Capture:
    """The file of one output stream of a run, which stays small however much is printed.

    It holds the first HEAD bytes, then the last TAIL bytes. The record that `finish` returns says
    where the cut is; on a full disk the cut comes earlier. The file must not exist before.
    """

    def __init__(self, path: Path, clean: Clean | None = None) -> None:
        self.stream = path.stem
        self._clean = clean  # removes secrets
        self._line = b""  # the last line, which may be unfinished
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(path, flags, 0o600)
        self._head = 0
        self._head_limit = HEAD
        self._tail = bytearray()
        self._tail_kept = 0  # bytes of the tail that are in the file
        self._total = 0
        self._is_dirty = False

    def take(self, data: bytes) -> None:
        """Keep `data`, or as much of it as there is room for.

        Empty data means that the stream has ended: an unfinished line is then not held back any
        more.
        """
        if self._clean:
            data = self._whole_lines(data, self._clean)
        self._total += len(data)
        first = data[: self._head_limit - self._head]
        if first:
            written = self._put(first, self._head)
            self._head += written
            if written < len(first):
                self._head_limit = self._head  # later bytes must not follow the gap directly
            data = data[written:]
        if data:
            self._tail += data
            if len(self._tail) > 2 * TAIL:
                del self._tail[:-TAIL]
            self._is_dirty = True

    def flush(self) -> None:
        """Write the last bytes behind the first ones; the next call repeats a write that failed."""
        if self._is_dirty:
            last = self._tail[-TAIL:]
            self._tail_kept = self._put(last, self._head)
            self._is_dirty = self._tail_kept < len(last)

    def finish(self) -> OutputCaptured:
        """End the stream, write what is held back, and return the record of the file."""
        self.take(b"")  # no more data comes: the last line is whole
        self.flush()
        return OutputCaptured(
            stream=self.stream,
            bytes_total=self._total,
            bytes_head=self._head,
            bytes_tail=self._tail_kept,
        )

    def _whole_lines(self, data: bytes, clean: Clean) -> bytes:
        """Return whole lines without secrets: a secret may arrive in two pieces."""
        text = self._line + data
        if not data:
            self._line = b""
            return clean_bytes(text, clean)
        end = text.rfind(b"\n") + 1
        if len(text) - end < _LINE:
            self._line = text[end:]
            return clean_bytes(text[:end], clean)
        cleaned = clean_bytes(text, clean)
        self._line = cleaned[-_LONGEST_SECRET:]
        return cleaned[:-_LONGEST_SECRET]

    def _put(self, data: bytes | bytearray, offset: int) -> int:
        """Write at an offset, and return the number of bytes written; 0 if the disk is full."""
        try:
            return os.pwrite(self._fd, data, offset)
        except OSError:
            return 0
