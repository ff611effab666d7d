"""Keeps what a run prints: the exact first and last bytes, and the count of what lies between."""

import contextlib
import os
from pathlib import Path

from tuilab.events import OutputCaptured

HEAD = 512 * 1024
TAIL = 512 * 1024


class Capture:
    """One output stream of a run, bounded however much is printed.

    The file holds the first HEAD bytes, then the last TAIL bytes; the record that `report` returns says where the cut is.
    """

    def __init__(self, path: Path) -> None:
        self.stream = path.stem
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._head = 0
        self._tail = bytearray()
        self._total = 0
        self._is_dirty = False

    def take(self, data: bytes) -> None:
        """Keep `data`, or what there is room for; a full disk keeps less and harms nothing."""
        self._total += len(data)
        room = HEAD - self._head
        if room > 0:
            with contextlib.suppress(OSError):
                self._head += os.pwrite(self._fd, data[:room], self._head)
        if len(data) > room:
            self._tail += data[max(room, 0) :]
            if len(self._tail) > 2 * TAIL:
                del self._tail[:-TAIL]
            self._is_dirty = True

    def flush(self) -> None:
        """Put the last bytes behind the first ones in the file."""
        if self._is_dirty:
            with contextlib.suppress(OSError):
                os.pwrite(self._fd, self._tail[-TAIL:], self._head)
            self._is_dirty = False

    def report(self) -> OutputCaptured:
        """Return the record of what was kept."""
        self.flush()
        tail = min(len(self._tail), TAIL)
        return OutputCaptured(stream=self.stream, bytes_total=self._total, bytes_head=self._head, bytes_tail=tail)
