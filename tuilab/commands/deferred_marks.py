"""Holds the marks of one process back until what was measured of them on a GPU has landed, so that all stay in order."""

from collections import deque
from collections.abc import Iterator

from tuilab.commands.marks import Mark
from tuilab.commands.watcher._tuilab_watch.layout import (
    HAS_VALUE,
    LANDED,
    LATE,
    SKIPPED,
    STEPPED,
    TIMED,
    WORKED,
)

_LONGEST_NS = 2**62  # that work on a GPU can take
_MOST_HELD = 2_000  # marks: what has not landed after so many others never does


class DeferredMarks:
    """Marks in order, the first of which waits."""

    def __init__(self) -> None:
        self._held: deque[Mark] = deque()
        self._late: dict[int, Mark] = {}  # by the time of their end: as far as they are known

    def take(self, marks: list[Mark]) -> list[Mark]:
        """Return the marks that are whole."""
        for mark in marks:
            if mark.kind in (LANDED, WORKED):
                self._land(mark)
                continue
            self._held.append(mark)
            if mark.flags & (LATE | TIMED):
                self._late[mark.ended] = mark
        return list(self._whole())

    def finish(self) -> list[Mark]:
        """Return those that still wait: what they lack is not known."""
        return list(self._whole(most=0))

    def _land(self, news: Mark) -> None:
        mark = self._late.get(news.began)
        if mark is None:
            return
        if news.kind == WORKED:
            mark = mark._replace(flags=mark.flags & ~TIMED)
            took_ns = news.value * 1e6
            if 0 <= took_ns < _LONGEST_NS:  # also neither NaN nor infinite
                since_ns = None if news.ended < 0 else news.ended
                mark = mark._replace(gpu_ns=round(took_ns), gpu_since_ns=since_ns)
        elif mark.kind == STEPPED:
            mark = mark._replace(flags=mark.flags & ~LATE, kind=SKIPPED if news.value else STEPPED)
        else:
            mark = mark._replace(flags=mark.flags & ~LATE | HAS_VALUE, value=news.value)
        self._late[news.began] = mark

    def _whole(self, most: int = _MOST_HELD) -> Iterator[Mark]:
        while self._held:
            mark = self._held[0]
            if mark.flags & (LATE | TIMED):
                mark = self._late.get(mark.ended, mark)
                if mark.flags & (LATE | TIMED) and len(self._held) <= most:
                    return
                self._late.pop(mark.ended, None)
            self._held.popleft()
            yield mark
