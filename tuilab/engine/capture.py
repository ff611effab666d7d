"""Keeps what a run prints: the exact first and last bytes, and the count of what lies between."""

import os
from pathlib import Path

from tuilab.record.events import OutputCaptured
from tuilab.record.secrets import Clean, clean_bytes

HEAD = 512 * 1024
TAIL = 512 * 1024
_LINE = 64 * 1024


class Capture:
    """One output stream of a run, bounded however much is printed.

    The file holds the first HEAD bytes, then the last TAIL bytes; the record that `report` returns says where the cut is. On a
    full disk the cut comes earlier.
    """

    def __init__(self, path: Path, clean: Clean | None = None) -> None:
        self.stream = path.stem
        self._clean = clean  # takes out what must not be kept
        self._line = b""  # the last one, which may not be whole
        self._fd = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        self._head = 0
        self._head_limit = HEAD
        self._tail = bytearray()
        self._tail_kept = 0  # bytes of it that are in the file
        self._total = 0
        self._is_dirty = False

    def take(self, data: bytes) -> None:
        """Keep `data`, or what there is room for; a full disk keeps less and harms nothing.

        No data is the end of a pipe.
        """
        if self._clean:
            data = self._whole_lines(data, self._clean)
        self._total += len(data)
        first = data[: self._head_limit - self._head]
        if first:
            written = self._put(first, self._head)
            self._head += written
            if written < len(first):
                self._head_limit = (
                    self._head
                )  # what follows must not look as if it came right after
            data = data[written:]
        if data:
            self._tail += data
            if len(self._tail) > 2 * TAIL:
                del self._tail[:-TAIL]
            self._is_dirty = True

    def flush(self) -> None:
        """Put the last bytes behind the first ones in the file."""
        if self._is_dirty:
            last = self._tail[-TAIL:]
            self._tail_kept = self._put(last, self._head)
            self._is_dirty = self._tail_kept < len(last)

    def report(self) -> OutputCaptured:
        """Return the record of what was kept."""
        self.take(b"")
        self.flush()
        return OutputCaptured(
            stream=self.stream,
            bytes_total=self._total,
            bytes_head=self._head,
            bytes_tail=self._tail_kept,
        )

    def _whole_lines(self, data: bytes, clean: Clean) -> bytes:
        """Return what may be kept of the lines that are whole: what is to be taken out may come in two pieces."""
        text = self._line + data
        end = text.rfind(b"\n") + 1 if data and len(text) < _LINE else len(text)
        self._line = text[end:]
        return clean_bytes(text[:end], clean)

    def _put(self, data: bytes | bytearray, offset: int) -> int:
        """Write at an offset and return how many bytes there was room for."""
        try:
            return os.pwrite(self._fd, data, offset)
        except OSError:
            return 0
