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

from .layout import FIRST, HEAD, MAGIC, MARK, SIZE, SLOT, WORDS, WORDS_OF_MARK, last_of, pieces_of

_END = SIZE // SLOT * WORDS
_AGAIN_S = 1.0  # until a full disk is tried again
_LONGEST = 4000  # bytes of a text
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
        self._number = self._first = _next_number(folder, self._pid)
        self._lost = 0
        # Texts that had no room. They are put later, because later marks refer to their ids.
        self._late: list[tuple[bytes, bytes]] = []
        self._again = 0.0
        # Reentrant, because a signal handler may log while its thread holds the lock.
        self._lock = threading.RLock()
        self._is_rolling = False
        self._map: Any = None
        # The file as whole numbers, the file as floats, and the iterator over its free slots: one
        # tuple, so that all three change together.
        self._here: Any = [(None, None, iter(()))]
        self.put = _putting(self._here, self._put_later)
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
        data = words.encode("utf-8", "replace")[:_LONGEST]
        packed, pieces = (
            MARK.pack(time.monotonic_ns(), 0, 0.0, len(data), name, 0, kind),
            pieces_of(data),
        )
        with self._lock:
            if self._put(packed, pieces):
                return
            if len(self._late) < _MOST_LATE:
                self._late.append((packed, pieces))
            else:
                self._count_lost()

    def _put_later(self, began: int, ended: int, value: float, last: int) -> None:
        with self._lock:
            if not self._put(WORDS_OF_MARK.pack(began, ended, value, last)):
                self._count_lost()

    def _put(self, packed: bytes, data: bytes = b"") -> bool:
        """Put a mark and its text into adjacent slots; return whether there was room.

        If this file is full, use the next file.
        """
        count = 1 + len(data) // SLOT
        for _ in range(2):
            marks, slots = self._map, self._here[0][2]
            taken = [next(slots, _END) for _ in range(count)]
            if taken[-1] < _END and taken[-1] - taken[0] == WORDS * (count - 1):
                offset = taken[0] // WORDS * SLOT
                marks[offset + SLOT : offset + SLOT + len(data)] = data
                marks[offset : offset + SLOT] = packed
                return True
            if not self._roll():
                break
        return False

    def _roll(self) -> bool:
        """Begin the next file; return whether that was done.

        It is not done if the disk has no room now, or if a file is being begun already.
        """
        if self._is_rolling or time.monotonic() < self._again:
            return False
        self._is_rolling = True
        try:
            new = self._map_next()
        except OSError as problem:
            self._again = time.monotonic() + _AGAIN_S
            if self._map is None:
                self._on_trouble(problem)
            return False
        finally:
            self._is_rolling = False
        HEAD.pack_into(new, 0, MAGIC, self._lost, self._first)
        free = self._put_late(new)
        view = memoryview(new)
        self._map, self._here[0] = (
            new,
            (view.cast("q"), view.cast("d"), itertools.count(free * WORDS, WORDS)),
        )
        return True

    def _put_late(self, new: Any) -> int:
        """Begin a new file with the texts that had no room; return its first free slot."""
        slot = FIRST
        while self._late:
            packed, data = self._late[0]
            behind = slot + 1 + len(data) // SLOT
            if behind > SIZE // SLOT:
                break
            new[(slot + 1) * SLOT : behind * SLOT] = data
            new[slot * SLOT : (slot + 1) * SLOT] = packed
            del self._late[0]
            slot = behind
        return slot

    def _map_next(self) -> Any:
        while True:
            path = os.path.join(self._folder, f"{self._pid}.{self._number}")
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                break
            except FileExistsError:  # a process in another container may have the same PID
                self._number += 1
        try:
            os.posix_fallocate(fd, 0, SIZE)
            new = mmap.mmap(fd, SIZE)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        self._number += 1
        return new

    def _count_lost(self) -> None:
        self._lost += 1
        if self._map is not None:
            HEAD.pack_into(self._map, 0, MAGIC, self._lost, self._first)


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


def _putting(
    here: Any, put_later: Callable[[int, int, float, int], None]
) -> Callable[[int, int, float, int], None]:
    """Return the function that puts a mark whose last word is known.

    The function is fast because it looks up little: when a step ends, little of the watcher is in
    the caches, and each look-up takes noticeable time.
    """
    end = _END

    def put(began: int, ended: int, value: float, last: int) -> None:
        words, floats, slots = here[0]
        at = next(slots, end)
        if at < end:
            words[at], words[at + 1], floats[at + 2], words[at + 3] = began, ended, value, last
        else:
            put_later(began, ended, value, last)

    return put
