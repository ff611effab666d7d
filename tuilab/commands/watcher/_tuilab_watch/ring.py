"""Put marks into a mapped file, without a thread and without a write call.

No mark is lost, however the process ends.
"""

from __future__ import annotations

import itertools
import mmap
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from .layout import (
    FIRST,
    HEAD,
    LONGEST_TEXT,
    MAGIC,
    MARK,
    SIZE,
    SLOT,
    WORDS_OF_MARK,
    last_of,
    pieces_of,
)

_RETRY_S = 1.0  # until a full disk is tried again
_MOST_LATE = 1000  # texts that wait for room on the disk


def _ignore(problem: OSError) -> None:
    """Do nothing: the caller gave no function that takes problems."""


class Ring:
    """The marks of one process, file after file.

    The space of a file is allocated before the first mark, so that a full disk causes no SIGBUS.
    """

    def __init__(self, folder: str, on_trouble: Callable[[OSError], object] = _ignore) -> None:
        """Begin the first file; if that fails, call `on_trouble` and try again with later marks."""
        self._folder = folder
        self._on_trouble = on_trouble
        self._pid = os.getpid()
        self._first_number = _next_number(folder, self._pid)
        self._number = self._first_number  # of the next file
        self._lost = 0
        # Texts that had no room. They are put later, because later marks refer to their ids.
        self._late_texts: list[tuple[bytes, bytes]] = []
        self._retry_at_s = 0.0
        # Reentrant, because a signal handler may log while its thread holds the lock.
        self._lock = threading.RLock()
        self._is_rolling = False
        self._map: Any = None
        # The list has one tuple, so that both parts change together: the file, and the iterator
        # over the first bytes of its free slots.
        self._current: Any = [(None, iter(()))]
        self.put = _make_put(self._current, self._put_slowly)
        self._roll()

    def mark(
        self,
        kind: int,
        began: int,
        ended: int,
        value: float = 0.0,
        number: int = 0,
        name: int = 0,
        flags: int = 0,
    ) -> None:
        """Put a mark."""
        self.put(began, ended, value, last_of(kind, name, flags) | number)

    def text(self, kind: int, words: str, name: int = 0) -> None:
        """Put a text with its mark."""
        data = words.encode("utf-8", "replace")[:LONGEST_TEXT]
        mark = MARK.pack(time.monotonic_ns(), 0, 0.0, len(data), name, 0, kind)
        pieces = pieces_of(data)
        with self._lock:
            if self._put(mark, pieces):
                return
            if len(self._late_texts) < _MOST_LATE:
                self._late_texts.append((mark, pieces))
            else:
                self._count_lost()

    def _put_slowly(self, began: int, ended: int, value: float, last: int) -> None:
        """Put a mark for which the current file has no slot; if there is no room, count it lost."""
        with self._lock:
            mark = WORDS_OF_MARK.pack(began, ended, value, last)
            if not self._put(mark):
                self._count_lost()

    def _put(self, mark: bytes, pieces: bytes = b"") -> bool:
        """Put a mark and the pieces of its text into adjacent slots; return whether there was room.

        If this file is full, use the next file.
        """
        count = 1 + len(pieces) // SLOT
        for _ in range(2):
            file = self._map
            _, slots = self._current[0]
            starts = [next(slots, SIZE) for _ in range(count)]
            # Another thread may have taken a slot in between, because `put` takes no lock.
            are_adjacent = starts[-1] - starts[0] == SLOT * (count - 1)
            if starts[-1] < SIZE and are_adjacent:
                start = starts[0]
                text_start = start + SLOT
                file[text_start : text_start + len(pieces)] = pieces
                file[start:text_start] = mark
                return True
            if not self._roll():
                break
        return False

    def _roll(self) -> bool:
        """Begin the next file; return whether that was done.

        It is not done if the disk has no room now, or if a file is being begun already.
        """
        if self._is_rolling or time.monotonic() < self._retry_at_s:
            return False
        # A signal handler may log at any point from here on. It must not begin yet another file:
        # tuilab would remove this file, because a later file exists. So its mark is counted lost.
        self._is_rolling = True
        try:
            new_file = self._map_next()
            free_slot = self._put_late_texts(new_file)
            slots = itertools.count(free_slot * SLOT, SLOT)
            self._map = new_file
            self._current[0] = (new_file, slots)
        except OSError as problem:
            self._retry_at_s = time.monotonic() + _RETRY_S
            if self._map is None:
                self._on_trouble(problem)
            return False
        finally:
            self._is_rolling = False
        HEAD.pack_into(new_file, 0, MAGIC, self._lost, self._first_number)
        return True

    def _put_late_texts(self, new_file: Any) -> int:
        """Begin a new file with the texts that had no room; return its first free slot."""
        slot = FIRST
        while self._late_texts:
            mark, pieces = self._late_texts[0]
            text_slot = slot + 1
            end_slot = text_slot + len(pieces) // SLOT
            if end_slot > SIZE // SLOT:
                break
            new_file[text_slot * SLOT : end_slot * SLOT] = pieces
            new_file[slot * SLOT : text_slot * SLOT] = mark
            del self._late_texts[0]
            slot = end_slot
        return slot

    def _map_next(self) -> Any:
        """Create and map the next file."""
        while True:
            path = os.path.join(self._folder, f"{self._pid}.{self._number}")
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                break
            except FileExistsError:  # a process in another container may have the same PID
                self._number += 1
        try:
            os.posix_fallocate(fd, 0, SIZE)
            new_file = mmap.mmap(fd, SIZE)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        self._number += 1
        return new_file

    def _count_lost(self) -> None:
        self._lost += 1
        if self._map is not None:
            HEAD.pack_into(self._map, 0, MAGIC, self._lost, self._first_number)


def _next_number(folder: str, pid: int) -> int:
    """Return a number above those of all files of earlier programs that had this PID."""
    numbers = [-1]
    try:
        names = os.listdir(folder)
    except OSError:
        names = []
    for name in names:
        owner, _, number = name.partition(".")
        if owner == str(pid) and number.isdecimal():
            numbers.append(int(number))
    return max(numbers) + 1


def _make_put(
    current: Any, put_slowly: Callable[[int, int, float, int], None]
) -> Callable[[int, int, float, int], None]:
    """Return the function that puts a mark whose last word is known.

    The function is fast because it looks up little: when a step ends, little of the watcher is in
    the caches, and each look-up takes noticeable time.
    """
    end = SIZE
    pack_into = WORDS_OF_MARK.pack_into

    def put(began: int, ended: int, value: float, last: int) -> None:
        """Put a mark into the next slot, or let the slow function do it if the file is full."""
        file, slots = current[0]
        start = next(slots, end)
        if start < end:
            # The kind is in the last byte, which is written last: from then on the mark is valid.
            pack_into(file, start, began, ended, value, last)
        else:
            put_slowly(began, ended, value, last)

    return put
