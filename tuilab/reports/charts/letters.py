"""Place letters at the ends of lines. Letters do not overlap; without room a letter is left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_GAP = 14.0  # pixels from one letter down to the next
_COLUMN_WIDTH = 14.0  # pixels; lines that end within them have their letters in one column
_DISTANCE = 11.0  # pixels from the end of a line to its letter
_MAX_SHIFT = 4.0  # pixels that a letter may be above or below its line without a leader


@dataclass(frozen=True)
class LineEnd:
    """Where the line of a style ends."""

    look: int
    x: float
    y: float


@dataclass(frozen=True)
class Letter:
    """A letter and the end of its line. A leader connects them if the letter was shifted."""

    look: int
    x: float
    y: float
    end_x: float
    end_y: float
    has_leader: bool


def place_letters(ends: Sequence[LineEnd], top: float, bottom: float) -> list[Letter]:
    """Return the letters of lines, column by column and from above."""
    max_letters = int((bottom - top) / _GAP) + 1
    letters = []
    for column in _group_columns(ends):
        labelled = _drop_crowded(column, max_letters)
        x = max(end.x for end in labelled) + _DISTANCE
        ys = spread_apart([end.y for end in labelled], _GAP, top, bottom)
        for end, y in zip(labelled, ys, strict=True):
            has_leader = abs(y - end.y) > _MAX_SHIFT
            letters.append(Letter(end.look, round(x, 1), round(y, 1), end.x, end.y, has_leader))
    return letters


def spread_apart(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places at least `gap` apart, in the order of `targets` and as near to them as can be.

    Without the gaps, the places must only not fall: neighbours that would fall share their mean
    (isotonic regression).
    """
    pools: list[list[float]] = []
    for index, target in enumerate(targets):
        pools.append([target - gap * index])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    rising: list[float] = []
    for pool in pools:
        rising += [_mean(pool)] * len(pool)
    max_place = high - gap * (len(rising) - 1)
    places = []
    for index, place in enumerate(rising):
        places.append(min(max(place, low), max_place) + gap * index)
    return places


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)  # fmean would round differently


def _group_columns(ends: Sequence[LineEnd]) -> list[list[LineEnd]]:
    """Return the ends in columns, each from above."""
    columns: list[list[LineEnd]] = []
    for end in sorted(ends, key=lambda end: end.x):
        if columns and end.x - columns[-1][-1].x < _COLUMN_WIDTH:
            columns[-1].append(end)
        else:
            columns.append([end])
    for column in columns:
        column.sort(key=lambda end: end.y)
    return columns


def _drop_crowded(column: Sequence[LineEnd], max_letters: int) -> list[LineEnd]:
    """Return the ends that have room for a letter, without those nearest to the end above."""
    ends = list(column)
    while len(ends) > max_letters:
        gaps = [lower.y - upper.y for upper, lower in pairwise(ends)]
        narrowest = gaps.index(min(gaps))
        del ends[narrowest + 1]
    return ends
