"""The letters at the ends of lines: each at its own line, none on another, and none where there is no room for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_GAP = 14.0  # pixels from one letter to the next below it
_COLUMN = 14.0  # pixels within which ends of lines have their letters below each other
_BEHIND = 11.0  # pixels from the end of a line to its letter
_NEAR = 4.0  # pixels that a letter may be beside its line without a leader


@dataclass(frozen=True)
class End:
    """Where the line of a look ends."""

    look: int
    x: float
    y: float


@dataclass(frozen=True)
class Letter:
    """A letter, and the end of its line, to which a leader is drawn where it is not beside it."""

    look: int
    x: float
    y: float
    end_x: float
    end_y: float
    has_leader: bool


def letters(ends: Sequence[End], top: float, bottom: float) -> list[Letter]:
    """Return the letters of lines, in the order of their ends from above; where lines crowd, some have none."""
    found = []
    for column in _columns(ends):
        shown = _that_fit(column, int((bottom - top) / _GAP) + 1)
        x = max(end.x for end in shown) + _BEHIND
        for end, y in zip(shown, spread([end.y for end in shown], _GAP, top, bottom), strict=True):
            found.append(
                Letter(end.look, round(x, 1), round(y, 1), end.x, end.y, abs(y - end.y) > _NEAR)
            )
    return found


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places at least `gap` apart between two ends, in the order of the wanted ones and together nearest to them.

    Without the gaps below it each place would have to be no lower than the one before: neighbours that are share their mean.
    """
    pools: list[list[float]] = []
    for at, place in enumerate(wanted):
        pools.append([place - gap * at])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    even = [_mean(pool) for pool in pools for _ in pool]
    return [
        min(max(place, low), high - gap * (len(even) - 1)) + gap * at
        for at, place in enumerate(even)
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _columns(ends: Sequence[End]) -> list[list[End]]:
    """Return the ends in columns, each from above."""
    columns: list[list[End]] = []
    for end in sorted(ends, key=lambda end: end.x):
        if columns and end.x - columns[-1][-1].x < _COLUMN:
            columns[-1].append(end)
        else:
            columns.append([end])
    return [sorted(column, key=lambda end: end.y) for column in columns]


def _that_fit(column: Sequence[End], most: int) -> list[End]:
    """Return the ends that there is room for, without those that are nearest to others."""
    kept = list(column)
    while len(kept) > most:
        gaps = [after.y - before.y for before, after in pairwise(kept)]
        del kept[gaps.index(min(gaps)) + 1]
    return kept
