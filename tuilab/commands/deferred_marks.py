"""Hold back the marks of a process until their GPU times arrive, so that all stay in order.

A mark is an event, such as a step, that the watcher in a process writes to a file. A mark with the
flag LATE lacks a value that is still on a GPU: a LANDED mark brings it later. A mark with the flag
TIMED lacks its time on the GPU, which a WORKED mark brings.
"""

from collections import deque
from collections.abc import Iterator

from tuilab.commands.marks import UNKNOWN_NS, Mark
from tuilab.commands.watcher._tuilab_watch.layout import (
    HAS_VALUE,
    LANDED,
    LATE,
    SKIPPED,
    STEPPED,
    TIMED,
    WORKED,
)

_LONGEST_NS = 2**62  # for work on a GPU
_MOST_HELD = 2_000  # marks: a time that is still missing after so many later marks is lost


class DeferredMarks:
    """The marks that are held back, oldest first."""

    def __init__(self) -> None:
        self._held: deque[Mark] = deque()
        self._late: dict[int, Mark] = {}  # incomplete marks, by the time of their end

    def take(self, marks: list[Mark]) -> list[Mark]:
        """Take new marks, and return those that are complete, oldest first.

        Marks behind an incomplete one wait for it. If more than _MOST_HELD marks wait, the
        incomplete mark is returned as it is. LANDED and WORKED marks are never returned.
        """
        for mark in marks:
            if mark.kind in (LANDED, WORKED):
                self._complete(mark)
                continue
            self._held.append(mark)
            if mark.flags & (LATE | TIMED):
                self._late[mark.ended] = mark
        return list(self._ready())

    def finish(self) -> list[Mark]:
        """Return the marks that are still held, and forget them; missing values stay unknown."""
        return list(self._ready(most=0))

    def _complete(self, news: Mark) -> None:
        """Put the value or time of a LANDED or WORKED mark into the mark that it belongs to.

        If that mark is not held any more, nothing happens.
        """
        mark = self._late.get(news.began)
        if mark is None:
            return
        if news.kind == WORKED:
            mark = _with_time(mark, news)
        elif not news.flags & HAS_VALUE:
            mark = mark._replace(flags=mark.flags & ~LATE)
        elif mark.kind == STEPPED:
            kind = SKIPPED if news.value else STEPPED
            mark = mark._replace(flags=mark.flags & ~LATE, kind=kind)
        else:
            flags = mark.flags & ~LATE | HAS_VALUE
            mark = mark._replace(flags=flags, value=news.value)
        self._late[news.began] = mark

    def _ready(self, most: int = _MOST_HELD) -> Iterator[Mark]:
        """Yield and forget the oldest marks, up to the first one that is incomplete.

        If more than `most` marks are held, an incomplete one is yielded as it is.
        """
        while self._held:
            mark = self._held[0]
            if mark.flags & (LATE | TIMED):
                mark = self._late.get(mark.ended, mark)
                if mark.flags & (LATE | TIMED) and len(self._held) <= most:
                    return
                self._late.pop(mark.ended, None)
            self._held.popleft()
            yield mark


def _with_time(mark: Mark, worked: Mark) -> Mark:
    """Return a mark with its times on the GPU; a time that cannot be true stays unknown."""
    gpu_ns = None
    took_ns = worked.value * 1e6
    if 0 <= took_ns < _LONGEST_NS:  # this also excludes NaN and infinity
        gpu_ns = round(took_ns)
    since_ns = max(worked.ended, UNKNOWN_NS)
    return mark._replace(flags=mark.flags & ~TIMED, gpu_ns=gpu_ns, gpu_since_ns=since_ns)
