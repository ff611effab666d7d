"""Search the output of a command for numbers: the values of the user's patterns, and the progress.

The threads that pass the output on only store it here. The main thread searches it, because there
an alarm can end a pattern that takes for ever. A pattern is tried only on lines that contain a text
that it needs, so that much output costs little. Output that comes faster than it can be searched
is counted and skipped.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tuilab.commands.output.patterns import Alarm, Pattern
from tuilab.commands.output.totals import CommandProgress, Totals

_LONGEST = 4096  # bytes of a line that are searched
_MOST_WAITING = 16 << 20  # bytes that wait to be searched
_TURN_S = 0.02  # the most time to search in one turn
_LAST_S = 1.0  # the same for the last turn
_STRIKES = 3  # a pattern that takes too long this often is given up
_TOTALS_EVERY_S = 0.2  # between two searches for totals
_TOTALS_OF = 16 * 1024  # bytes at the end of the new output that are searched for totals


class PrintedNumber(NamedTuple):
    """A number that was printed."""

    name: str
    value: float


class NumberScanner:
    """Takes the output from the threads that pass it on, and yields the numbers in it."""

    def __init__(self, metrics: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._patterns = [Pattern.of(metric) for metric in metrics]
        self._clock = clock
        self._totals = Totals()
        self._last_progress: CommandProgress | None = None  # the result of the last search
        self._looked_at = clock()
        self._ends: list[_StreamEnd] = []  # by stream
        self._rests: list[bytes] = []  # by stream: the line that is not complete yet
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._is_heard = False
        self._lock = threading.Lock()
        self.skipped_bytes = 0
        self.counts = {pattern.name: 0 for pattern in self._patterns}  # of numbers
        self.slow: set[str] = set()  # names of patterns that took too long on a line
        self.given_up: list[str] = []  # names of patterns that did so _STRIKES times

    def add_stream(self) -> Callable[[bytes], None]:
        """Add a stream; return the function that takes its output."""
        self._ends.append(_StreamEnd())
        self._rests.append(b"")
        stream = len(self._ends) - 1
        return lambda data: self._take(stream, data)

    def _take(self, stream: int, data: bytes) -> None:
        """Store new output of a stream; a thread calls this.

        Too much waiting output is only counted.
        """
        with self._lock:
            self._is_heard = True
            self._ends[stream].take(data)
            if not self._patterns:
                return
            if self._size > _MOST_WAITING:
                self.skipped_bytes += len(data)
                return
            self._waiting.append((stream, data))
            self._size += len(data)

    def is_heard(self) -> bool:
        """Return whether anything was printed since the last call."""
        with self._lock:
            is_heard = self._is_heard
            self._is_heard = False
        return is_heard

    def values(self, *, is_last: bool = False) -> Iterator[PrintedNumber]:
        """Yield the numbers in the new output, until the time for one turn is used up.

        Call it in the main thread. The last call also searches the lines without an end, and counts
        what there was no time for.
        """
        until = self._clock() + (_LAST_S if is_last else _TURN_S)
        while True:
            portion = self._next()
            if portion is None:
                break
            stream, data = portion
            yield from self._search(stream, data)
            if self._clock() > until:
                break
        if is_last:
            for stream, rest in enumerate(self._rests):  # a line end completes the last line
                yield from self._search(stream, b"\n" if rest else b"")
            self.skipped_bytes += self._size

    def _next(self) -> tuple[int, bytes] | None:
        """Remove the oldest portion of waiting output, and return it with its stream; else None."""
        with self._lock:
            if not self._waiting:
                return None
            stream, data = self._waiting.popleft()
            self._size -= len(data)
            return stream, data

    def _search(self, stream: int, data: bytes) -> Iterator[PrintedNumber]:
        """Search the lines that are complete now, and yield their numbers; keep the rest."""
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if end:
            lines = self._rests[stream] + data[:end]
            rest = data[end:]
        else:
            lines = b""
            rest = self._rests[stream] + data
        self._rests[stream] = rest[:_LONGEST]
        for pattern in list(self._patterns):
            for line in pattern.lines(lines):
                yield from self._values(pattern, line[:_LONGEST])

    def _values(self, pattern: Pattern, line: bytes) -> Iterator[PrintedNumber]:
        """Yield the numbers that a pattern finds in a line; none if that takes too long.

        A pattern that takes too long _STRIKES times is given up.
        """
        try:
            with Alarm():
                numbers = pattern.numbers(line)
        except TimeoutError:
            self.slow.add(pattern.name)
            pattern.strikes += 1
            if pattern.strikes == _STRIKES:
                self._patterns.remove(pattern)
                self.given_up.append(pattern.name)
            return
        for value in numbers:
            self.counts[pattern.name] += 1
            yield PrintedNumber(pattern.name, value)

    def progress(self, *, is_last: bool = False) -> CommandProgress | None:
        """Return the progress of the command if it has changed; None if not, or if it is too early.

        The output is searched for it at most every _TOTALS_EVERY_S.
        """
        if not is_last and self._clock() - self._looked_at < _TOTALS_EVERY_S:
            return None
        self._looked_at = self._clock()
        lines: list[bytes] = []
        with self._lock:
            for end in self._ends:
                lines += end.lines(is_last=is_last)
        for line in lines:
            self._totals.take(line)
        progress = self._totals.progress()
        if progress == self._last_progress:
            return None
        self._last_progress = progress
        return progress


class _StreamEnd:
    """The end of the output of one stream, whose complete lines are searched for totals."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._is_cut = False  # whether the first line lacks its beginning

    def take(self, data: bytes) -> None:
        self._data += data[-_TOTALS_OF:]
        self._is_cut = self._is_cut or len(data) > _TOTALS_OF or len(self._data) > _TOTALS_OF
        del self._data[:-_TOTALS_OF]

    def lines(self, *, is_last: bool) -> list[bytes]:
        """Return the complete lines since the last call, and keep the incomplete one.

        A line may end only when the next one begins, as the lines of progress bars do. The last
        call also returns the incomplete line.
        """
        lines = bytes(self._data).replace(b"\r", b"\n").split(b"\n")
        unfinished = b"" if is_last else lines.pop()
        self._data[:] = unfinished
        if self._is_cut:
            del lines[:1]
            self._is_cut = not lines and bool(unfinished)
        return lines
