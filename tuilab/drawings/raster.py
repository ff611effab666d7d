"""Turns a line into dots: the least and the greatest value of each column of dots, joined to its neighbours."""

import numpy as np
from numpy.typing import NDArray

from tuilab.drawings.axis import Axis
from tuilab.drawings.lines import Line
from tuilab.drawings.symbols import Symbols

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def raster(line: Line, x: Axis, y: Axis, width: int, height: int, symbols: Symbols) -> NDArray[np.uint8]:
    """Return, for each cell, the set of its dots that a line touches."""
    across, down = symbols.across, symbols.down
    columns, rows = width * across, height * down
    spans = _spans(line, x, y, columns, rows)
    cells = np.zeros((height, width), np.uint8)
    if spans is None:
        return cells
    top, bottom = spans
    row = np.arange(rows)[:, None]
    dots = (row >= top) & (row <= bottom)
    for dx in range(across):
        for dy in range(down):
            cells |= dots[dy::down, dx::across].astype(np.uint8) << np.uint8(dx * down + dy)
    return cells


def column_of(axis: Axis, places: NDArray[np.float64], columns: int) -> Ints:
    """Return the column of each x; those outside are outside of 0..columns-1."""
    found: Ints = np.floor(axis.shares(places) * (columns - 1) + 0.5).astype(np.int64)
    return found


def _spans(line: Line, x: Axis, y: Axis, columns: int, rows: int) -> tuple[Ints, Ints] | None:
    """Return the top and the bottom dot of each column of dots; where there is nothing the top is below the bottom."""
    first = max(int(np.searchsorted(line.xs, x.low)) - 1, 0)
    after = int(np.searchsorted(line.xs, x.high, "right")) + 1
    places = column_of(x, line.xs[first:after], columns)
    if not len(places):
        return None
    starts = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
    at = places[starts]
    top = _row_of(y, np.maximum.reduceat(line.highs[first:after], starts), rows)
    bottom = _row_of(y, np.minimum.reduceat(line.lows[first:after], starts), rows)
    is_joined = ~line.breaks[first:after][starts[1:] - 1]
    return _joined(*_filled(at, top, bottom, is_joined, columns))


def _row_of(y: Axis, values: NDArray[np.float64], rows: int) -> Ints:
    found: Ints = np.floor((1 - y.shares(values)) * (rows - 1) + 0.5).astype(np.int64)
    return found


def _filled(
    at: Ints, top: Ints, bottom: Ints, is_joined: NDArray[np.bool_], columns: int
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Draw straight lines through the columns between points, and say which columns continue in the next one."""
    every = np.arange(columns)
    group = np.searchsorted(at, every, "right") - 1  # the last point at or before each column
    is_inside = (group >= 0) & (every <= at[-1])
    has_point = is_inside & (at[np.maximum(group, 0)] == every)
    continues = np.append(is_joined, False)[np.maximum(group, 0)] & is_inside
    between = np.floor(np.interp(every, at, (top + bottom) / 2) + 0.5).astype(np.int64)
    drawn_top = np.where(has_point, top[np.maximum(group, 0)], np.where(continues, between, 1))
    drawn_bottom = np.where(has_point, bottom[np.maximum(group, 0)], np.where(continues, between, 0))
    return drawn_top, drawn_bottom, continues


def _joined(top: Ints, bottom: Ints, continues: Flags) -> tuple[Ints, Ints]:
    """Let neighbours that belong together touch: each comes half of the way."""
    goes_on = continues[:-1]
    down_by = np.where(goes_on, top[1:] - bottom[:-1] - 1, 0)  # rows free between this column and a lower next one
    up_by = np.where(goes_on, top[:-1] - bottom[1:] - 1, 0)
    top, bottom = top.copy(), bottom.copy()
    reach, back = np.maximum(down_by, 0), np.maximum(up_by, 0)
    bottom[:-1] += reach // 2
    top[:-1] -= back // 2
    top[1:] -= reach - reach // 2
    bottom[1:] += back - back // 2
    return top, bottom
