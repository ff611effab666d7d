"""Which of the totals that a command prints, as in `step 10/200`, tells how far it is.

A total is known by its number: what stands before it goes up. One that begins again, as the batches of each epoch do, gives way
to one that does not, as their epochs. Dates, versions and scores do not go up one by one, or are called what they are.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

_TOTAL = re.compile(rb"(?<![\w.,/:-])(\d{1,12}) ?(?:/| of ) ?(\d{1,12})(?![\w./:-]|,\d)")
_WORD = re.compile(rb"\w+")
_SCORES = re.compile(rb"acc|correct|score|top|right|passed|failed|hit|match|precision|recall", re.IGNORECASE)
_SEEN = {"epochs": 2, "steps": 3}  # different numbers that went up, until a total counts
_GONE_ON = 5  # rises of another, after which one that is not seen any more is over
_AGAIN = 0.2  # of the total: a fall to below is a new beginning, to above it is no count of what is done
_MOST = 64  # totals


class Progress(NamedTuple):
    """How far a command is."""

    done: int
    total: int
    unit: str


@dataclass
class _Track:
    unit: str
    total: int
    done: int
    rises: int = 1
    restarts: int = 0
    is_count: bool = True
    seen_after: int = 0  # beginnings of others until it was seen last
    rises_after: int = 0  # and rises


class Totals:
    """Takes lines in their order, and says how far the command is."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[str, int], _Track] = {}
        self._chosen: _Track | None = None
        self._restarts = self._rises = 0  # of all

    def take(self, line: bytes) -> None:
        """Look at every total of a line."""
        for found in _TOTAL.finditer(line):
            done, total = int(found[1]), int(found[2])
            if done <= total > 1 and not _SCORES.search(_before(line, found.start())):
                self._note(_unit(line, found.start()), done, total)

    def progress(self) -> Progress | None:
        """Return how far it is by the total that tells it, if there is one."""
        self._choose()
        one = self._chosen
        return Progress(one.done, one.total, one.unit) if one else None

    def _note(self, unit: str, done: int, total: int) -> None:
        if (unit, total) not in self._tracks and len(self._tracks) >= _MOST:
            self._tracks.pop(min(self._tracks, key=lambda name: self._tracks[name].seen_after))
        one = self._tracks.setdefault((unit, total), _Track(unit, total, done))
        if done > one.done:
            one.rises += 1
            self._rises += 1
        elif done < one.done and done <= _AGAIN * total:
            one.restarts += 1
            self._restarts += 1
        elif done < one.done:
            one.is_count = False
        one.done, one.seen_after, one.rises_after = done, self._restarts, self._rises

    def _choose(self) -> None:
        """Keep what was chosen while it goes on; else take what counts without beginning again, what moves most first."""
        able = [one for one in self._tracks.values() if one.is_count and one.rises >= _needed(one)]
        whole = [one for one in able if not one.restarts and self._is_alive(one)]
        if self._chosen in whole and not self._is_over(self._chosen, whole):
            return
        others = [one for one in whole if one.done < one.total] or whole
        again = [one for one in able if one.restarts and self._is_alive(one)]
        self._chosen = max(others or again, key=lambda one: one.rises, default=self._chosen)

    def _is_over(self, one: _Track, whole: list[_Track]) -> bool:
        """Say whether others that do not begin again go on without it."""
        others = [other for other in whole if other is not one and other.done < other.total]
        is_left = self._rises - one.rises_after > _GONE_ON
        return bool(others) and (one.done == one.total or is_left) and any(o.rises_after > one.rises_after for o in others)

    def _is_alive(self, one: _Track) -> bool:
        """Say whether it was seen since others began again: what an epoch has begun with is, a download is not."""
        return self._restarts - one.seen_after <= 1 + one.restarts


def _needed(one: _Track) -> int:
    return min(_SEEN[one.unit], one.total)


def _before(line: bytes, at: int) -> bytes:
    return line[max(at - 24, 0) : at]


def _unit(line: bytes, at: int) -> str:
    words = _WORD.findall(_before(line, at))
    return "epochs" if words and words[-1].lower() in (b"epoch", b"epochs", b"ep") else "steps"
